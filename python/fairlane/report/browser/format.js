/** Numbers with units, as the tables of the command line write them. */

const PREFIXES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]];
const RATES = [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1, "b/s"]];
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
const minus = (text) => text.replace("-", "−");

/** Three significant digits, without an exponent. */
export function number(value) {
  const size = Math.abs(value);
  if (size >= 1000) return minus(Math.round(value).toLocaleString("en-US"));
  if (size !== 0 && size < 1e-3) return minus(value.toPrecision(2));
  return minus(String(Number(value.toPrecision(3))));
}

function scaled(value, units) {
  const [factor, unit] = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? units.at(-1);
  return `${number(value / factor)} ${unit}`;
}

export const seconds = (value) => (value === null || Number.isNaN(value) ? "–" : value === 0 ? "0 s" : scaled(value, PREFIXES));

/** A time from seconds to days. */
export function duration(value) {
  if (value === null || Number.isNaN(value)) return "–";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (Math.abs(value) >= 2 * size) return `${number(value / size)} ${unit}`;
  return value < 1 ? seconds(value) : `${number(value)} s`;
}

export const rate = (value) => scaled(value, RATES);
export const bytes = (value) => scaled(value, SIZES);

/** A share as a percentage with one decimal. */
export function percent(share, signed = false) {
  if (share === null || Number.isNaN(share)) return "–";
  if (share > 0 && share < 0.0005 && !signed) return "<0.1%";
  const text = (100 * share).toFixed(Math.abs(share) < 0.9995 ? 1 : 0);
  return minus(signed && share > 0 ? `+${text}%` : `${text}%`);
}

/** Text that can stand in HTML. */
export const escaped = (text) =>
  String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
