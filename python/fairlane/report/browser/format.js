/** Numbers with units, as the tables of the command line write them. */

const PREFIXES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]];
const RATES = [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1, "b/s"]];
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
const minus = (text) => text.replace(/^-/, "−");

/** Three significant digits, at least all before the point, without trailing zeros: "0.0123", "12,345", as `significant` of wording.py. */
export function number(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-4 || !Number.isFinite(value)) return minus(value.toExponential(2).replace(/\.?0+e/, "e").replace(/e-(\d)$/, "e-0$1"));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(size)));
  return minus(Number(value.toFixed(Math.min(decimals, 20))).toLocaleString("en-US", { maximumFractionDigits: decimals }));
}

/** Three digits, trailing zeros included, as `number` of wording.py writes times: "1.20", "45.6", "789". */
function digits(value) {
  const size = Math.abs(value);
  return minus(value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0));
}

function scaled(value, units, form = number, otherwise = units.at(-1)) {
  const [factor, unit] = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? otherwise;
  return `${form(value / factor)} ${unit}`;
}

/** A time with three digits in a fitting unit, as `seconds` of wording.py. */
export const seconds = (value) => (value === null || Number.isNaN(value) ? "–" : value === 0 ? "0 s" : scaled(value, PREFIXES, digits, PREFIXES[0]));

/** The same without trailing zeros, for the ticks of an axis: "3 ms". */
export const timeTick = (value) => (value === 0 ? "0 s" : scaled(value, PREFIXES, number, PREFIXES[0]));

export const rate = (value) => scaled(value, RATES);
export const bytes = (value) => scaled(value, SIZES);

/** A share as a percentage with one decimal, as `percent` of wording.py. */
export function percent(share, signed = false) {
  if (share === null || Number.isNaN(share)) return "–";
  if (share > 0 && share < 0.0005 && !signed) return "<0.1%";
  const text = (100 * Number(share.toFixed(5))).toFixed(Math.abs(share) < 0.9995 ? 1 : 0);
  if (Number(text) === 0) return `${text.replace("-", "")}%`;
  return minus(signed && share > 0 ? `+${text}%` : `${text}%`);
}

/** Text that can stand in HTML. */
export const escaped = (text) =>
  String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
