/** Colours of both themes. Those of data are safe for colour-blind readers: viridis and Petroff's palette of eight. */

import { COLOURS } from "report/constants";

export const PALETTE = [...COLOURS];
const BLUES = [PALETTE[0], PALETTE[6]]; // the second has the greater contrast with a dark background
const VIRIDIS = [
  "#440154", "#481a6c", "#472f7d", "#414487", "#39568c", "#31688e", "#2a788e", "#23888e",
  "#1f988b", "#22a884", "#35b779", "#54c568", "#7ad151", "#a5db36", "#d2e21b", "#fde725",
];
const listeners = [];
const dark = window.matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => {
  const given = document.documentElement.dataset.theme;
  return given === "dark" || (given !== "light" && dark.matches);
};

/** The first colour is the blue with the greater contrast. */
function choose() {
  [PALETTE[0], PALETTE[6]] = isDark() ? BLUES.toReversed() : BLUES;
}

choose();

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Colours of text and lines, from the style sheet. */
export const colours = () => ({
  ink: variable("--ink"), muted: variable("--muted"), line: variable("--line"), card: variable("--card"), faint: variable("--faint"),
});

function mix(stops, at) {
  const place = Math.min(Math.max(at, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const [a, b] = [stops[low], stops[low + 1]].map((stop) => [1, 3, 5].map((from) => parseInt(stop.slice(from, from + 2), 16)));
  return `#${a.map((part, i) => Math.round(part + (b[i] - part) * (place - low)).toString(16).padStart(2, "0")).join("")}`;
}

/** Colours from low to high: the high end has the greater contrast with the background. */
export const ramp = (count) => {
  const stops = isDark() ? VIRIDIS.slice(2) : VIRIDIS.slice(0, 15).reverse();
  return Array.from({ length: count }, (_, at) => mix(stops, at / (count - 1)));
};

/** Colours from "less" by "same" to "more". */
export const diverging = (count) => {
  const stops = isDark() ? ["#6ea8ff", "#2f55a8", "#3d4148", "#a8541f", "#ffa25c"] : ["#0b3ea8", "#7fa3e6", "#dcdcdc", "#f0a46b", "#b84500"];
  return Array.from({ length: count }, (_, at) => mix(stops, at / (count - 1)));
};

export function onTheme(call) {
  listeners.push(call);
}

export function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  choose();
  for (const call of listeners) call();
}

dark.addEventListener("change", () => setTheme(document.getElementById("theme").value));
// Paper is white: what is printed is drawn with the light colours.
window.addEventListener("beforeprint", () => isDark() && setTheme("light"));
window.addEventListener("afterprint", () => setTheme(document.getElementById("theme").value));
