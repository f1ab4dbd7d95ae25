/** Scales from values to colours, and their legends. */

import { DECADES, FEW_LARGE } from "report/constants";
import { diverging, ramp } from "report/theme";

/**
 * A scale for values: `of(value)` is a share of the ramp, null for no value; `colours` has `count` of them. Signed values
 * that are better if larger have `better`: blue is better then, else less.
 */
export function scaleOf(values, count, signed = false, better = false) {
  let low = Infinity;
  let high = 0;
  const positive = [];
  for (const value of values) {
    const size = Math.abs(value);
    if (size > 0) {
      positive.push(size);
      if (size > high) high = size;
      if (size < low) low = size;
    }
  }
  if (signed) return { low: -high, high, logarithmic: false, colours: better ? diverging(count).reverse() : diverging(count), of: (value) => (value === 0 || !high ? null : 0.5 + value / high / 2) };
  positive.sort((a, b) => a - b);
  const logarithmic = high > FEW_LARGE * (positive[positive.length >> 1] ?? high);
  const floor = high * 10 ** -DECADES;
  const of = logarithmic ? (value) => Math.max(0, Math.log10(value / floor) / DECADES) : (value) => value / high;
  return { low: logarithmic ? floor : 0, high, logarithmic, colours: ramp(count), of: (value) => (value > 0 ? of(value) : null) };
}

/** Draws a legend of a scale into an element. */
export function drawLegend(element, scale, label, form) {
  const stops = scale.colours.join(", ");
  const middle = scale.logarithmic ? " (logarithmic)" : "";
  const bar = document.createElement("span");
  bar.className = "ramp";
  bar.style.background = `linear-gradient(to right, ${stops})`;
  const [low, high, name] = [scale.low, scale.high, null].map(() => document.createElement("span"));
  low.textContent = `${scale.logarithmic ? "≤ " : ""}${form(scale.low)}`;
  high.textContent = form(scale.high);
  name.textContent = `${label}${middle}`;
  name.className = "legend-name";
  element.replaceChildren(name, low, bar, high);
}
