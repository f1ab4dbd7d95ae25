/** What the parts of a page that are drawn by hand have in common: elements, text, colours, drawing as SVG, data. */

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A labelled control. */
export const labelled = (text, control) => element("label", { className: "control" }, element("span", { textContent: text }), control);

export const select = (id, options, change) => element("select", { id, oninput: ({ target }) => change(target.value) }, ...options.map(([value, textContent]) => element("option", { value, textContent })));
export const button = (textContent, onclick, properties = {}) => element("button", { type: "button", textContent, onclick, ...properties });

const ARRAYS = { f32: Float32Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array };

/** JSON with its arrays of numbers unpacked (see packing.py). */
export async function unpacked(value) {
  if (value === null || typeof value !== "object") return value;
  if (typeof value.array === "string" && value.array in ARRAYS) {
    const bytes = Uint8Array.from(atob(value.data), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new ARRAYS[value.array](await new Response(stream).arrayBuffer());
  }
  if (Array.isArray(value) && typeof value[0] !== "object") return value;
  const entries = await Promise.all(Object.entries(value).map(async ([key, one]) => [key, await unpacked(one)]));
  return Array.isArray(value) ? entries.map(([, one]) => one) : Object.fromEntries(entries);
}

/** Rows as CSV (RFC 4180). */
export function csvOf(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

// Numbers are written as by wording.py.
const minus = (text) => text.replace("-", "−");
const scaled = (value, units) => {
  const [unit, size] = units.find(([, size_]) => Math.abs(value) >= 0.9995 * size_) ?? units.at(-1);
  return `${number(value / size)} ${unit}`;
};
const PREFIXES = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9], ["ps", 1e-12]];
export const number = (value) => minus(Number.isInteger(value) ? value.toLocaleString("en-US") : value.toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0));
export const seconds = (value) => (value === 0 ? "0 s" : scaled(value, PREFIXES));
export const bytes = (value) => scaled(value, [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
export const rate = (value) => scaled(value, [["Tb/s", 1e12], ["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3], ["b/s", 1]]);
export function percent(share, signed = false) {
  if (share > 0 && share < 0.0005 && !signed) return "<0.1%";
  const text = (100 * Number(share.toFixed(5))).toFixed(Math.abs(share) < 0.9995 ? 1 : 0);
  if (Number(text) === 0) return `${text.replace("-", "")}%`;
  return minus(signed && share > 0 ? `+${text}%` : `${text}%`);
}

const VIRIDIS = ["#440154", "#472f7d", "#39568c", "#2a788e", "#1f988b", "#35b779", "#7ad151", "#d2e21b"];
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Colours of the theme, from the style sheet. */
export const colours = () => Object.fromEntries(["ink", "muted", "line", "card", "faint", "palette0", "palette1"].map((name) => [name, variable(`--${name}`)]));
const isDark = () => parseInt(variable("--card").slice(1, 3), 16) < 128;

/** Stops of colours from low to high: the high end has the greater contrast with the background. */
export const ramp = () => (isDark() ? VIRIDIS : [...VIRIDIS].reverse());
const diverging = () => Array.from({ length: 15 }, (_, at) => variable(`--diverging${14 - at}`)); // more load has the colour of a loss

const rgb = (colour) => [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
function mix(stops, at) {
  const place = Math.min(Math.max(at, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const [a, b] = [rgb(stops[low]), rgb(stops[low + 1])];
  return `#${a.map((part, i) => Math.round(part + (b[i] - part) * (place - low)).toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever can be read on a colour. */
export const inkOn = (colour) => {
  const [red, green, blue] = rgb(colour);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#222222" : "#ffffff";
};

/**
 * A scale from values to colours: `of(value)` is a share of the ramp, null for no value; `colour(share)`. With the rule
 * of scales.py, it is logarithmic where the largest value is far above the median.
 */
export function scaleOf(values, rule, { signed = false, stops = ramp() } = {}) {
  const sizes = Float64Array.from(values, Math.abs).filter((size) => size > 0).sort();
  const high = sizes.at(-1) ?? 0;
  const made = { high, signed, logarithmic: false, low: signed ? -high : 0, stops: signed ? diverging() : stops };
  made.colour = (share) => mix(made.stops, share);
  if (signed) return { ...made, of: (value) => (value === 0 || !high ? null : 0.5 + value / high / 2) };
  const logarithmic = high > rule.few_large * (sizes[sizes.length >> 1] ?? high);
  const floor = high * 10 ** -rule.decades;
  const share = logarithmic ? (value) => Math.max(0, Math.log10(value / floor) / rule.decades) : (value) => value / high;
  return { ...made, logarithmic, low: logarithmic ? floor : 0, of: (value) => (value > 0 ? share(value) : null) };
}

/** Draws the legend of a scale into an element. */
export function drawLegend(into, scale, label, form) {
  const bar = element("span", { className: "ramp" });
  bar.style.background = `linear-gradient(to right, ${scale.stops.join(", ")})`;
  const texts = [`${label}${scale.logarithmic ? " (logarithmic)" : ""}`, `${scale.logarithmic ? "≤ " : ""}${form(scale.low)}`, form(scale.high)];
  const [name, low, high] = texts.map((textContent) => element("span", { textContent }));
  into.replaceChildren(name, low, bar, high);
}

/** A canvas that fills an element at the resolution of the screen, and its context. */
export function canvasIn(parent, width = parent.clientWidth, height = parent.clientHeight, canvas = element("canvas")) {
  const resolution = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: width * resolution, height: height * resolution });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  if (!canvas.parentElement) parent.append(canvas);
  const context = canvas.getContext("2d");
  context.scale(resolution, resolution);
  return context;
}

/** What draws as a canvas does, into SVG. */
export class Svg {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], path: "", fillStyle: "", strokeStyle: "", lineWidth: 1, globalAlpha: 1, font: "", textAlign: "left", turn: "" });
  }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  rect(x, y, width, height) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}h${width}v${height}h${-width}z`; }
  arc(x, y, r) { this.path += `M${(x - r).toFixed(1)} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; }
  clearRect() { this.parts = []; }
  stroke() { this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" opacity="${this.globalAlpha}"/>`); }
  fill() { this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}" opacity="${this.globalAlpha}"/>`); }
  fillText(text, x, y) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const node = document.createElementNS("http://www.w3.org/2000/svg", "text");
    node.textContent = text;
    this.parts.push(`<text x="${x}" y="${y}" fill="${this.fillStyle}" style="font: ${this.font}" text-anchor="${anchor}" dominant-baseline="middle" transform="${this.turn}">${node.innerHTML}</text>`);
  }
  toString() { return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}">${this.parts.join("")}</svg>`; }
}
