/** A figure: heading, sentence, controls, chart, and export as SVG, PNG and CSV. */

import { colours, onTheme } from "report/theme";

const MOST_BARS = 36; // categories that are shown at a time
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) target.dispatchEvent(new CustomEvent("resized"));
});

/** An element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A labelled control. */
export const labelled = (text, control) => element("label", { className: "control" }, element("span", { textContent: text }), control);

export function download(name, type, content) {
  const url = content.startsWith("data:") ? content : URL.createObjectURL(new Blob([content], { type }));
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

/** Rows as CSV (RFC 4180). */
export function csvOf(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** What all options have in common: colours of the theme, no animation. */
export function styled(option) {
  const { ink, muted, line, card } = colours();
  const axis = (one) => ({
    nameLocation: "middle", nameGap: 28, nameTextStyle: { color: ink },
    ...one,
    axisLabel: { color: ink, ...one.axisLabel }, axisLine: { lineStyle: { color: line }, ...one.axisLine },
    splitLine: { lineStyle: { color: line }, ...one.splitLine }, axisTick: { show: false },
  });
  const axes = (given) => (Array.isArray(given) ? given.map(axis) : given && axis(given));
  return {
    animation: false,
    textStyle: { fontFamily: "system-ui, sans-serif", color: ink },
    ...option,
    ...(option.xAxis && { xAxis: axes(option.xAxis), yAxis: axes(option.yAxis) }),
    ...(option.legend && { legend: { textStyle: { color: ink }, inactiveColor: muted, ...option.legend } }),
    ...(option.tooltip && { tooltip: { backgroundColor: card, borderColor: line, textStyle: { color: ink }, confine: true, ...option.tooltip } }),
  };
}

/** A vertical axis of names, from the top; of many a part at a time. Returns parts of an option, and a height. */
export function nameAxis(names, zoomed = true) {
  const many = zoomed && names.length > MOST_BARS;
  return {
    yAxis: { type: "category", data: names, inverse: true, splitLine: { show: false }, axisLabel: { interval: 0, width: 130, overflow: "truncate" } },
    dataZoom: many ? [{ type: "slider", yAxisIndex: 0, startValue: 0, endValue: MOST_BARS - 1, width: 14, right: 4, showDetail: false, brushSelect: false }] : [],
    height: 90 + 19 * Math.min(names.length, MOST_BARS),
  };
}

/** Prints a chart as SVG: large charts are painted on their canvas bit by bit, and printing does not wait for that. */
export function printAsSvg(plot, option, chart) {
  let printed = null;
  window.addEventListener("beforeprint", () => {
    printed = element("div", { className: "printed", innerHTML: svgOf(option(), chart.getWidth(), chart.getHeight()) });
    plot.after(printed);
  });
  window.addEventListener("afterprint", () => printed?.remove());
}

/**
 * Adds a figure to the page.
 *
 * @param {object} given `id`, `title`, `sentence`, `option()` (ECharts), `csv()` (rows), and if wanted `controls`
 *   (elements), `height()` and `width()` in pixels, `click(parameters)`, `note`, and `into`, the element to add it to.
 * @returns {{chart: object, redraw: function(): void}} The chart, and what draws it anew.
 */
export function figure(given) {
  const plot = element("div", { className: "plot", id: `${given.id}-plot` });
  const sentence = element("p", { className: "sentence", id: `${given.id}-sentence`, textContent: given.sentence ?? "" });
  const exporting = element("div", { className: "export" });
  const heading = element("h2", { textContent: given.title, id: `${given.id}-title` });
  const card = element("section", { className: "card", id: given.id }, heading, sentence);
  card.setAttribute("aria-labelledby", heading.id);
  if (given.controls) card.append(element("div", { className: "controls" }, ...given.controls));
  card.append(element("div", { className: "scroller" }, plot));
  card.lastChild.tabIndex = 0;
  card.lastChild.setAttribute("role", "group");
  card.lastChild.setAttribute("aria-label", given.title);
  if (given.note) card.append(element("p", { className: "note", textContent: given.note }));
  card.append(exporting);
  (given.into ?? document.getElementById("figures")).append(card);
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-labelledby", sentence.id);

  const size = () => {
    plot.style.height = `${given.height?.() ?? 320}px`;
    plot.style.minWidth = given.width ? `${given.width()}px` : "";
  };
  size();
  const chart = echarts.init(plot);
  const redraw = () => {
    size();
    chart.resize();
    chart.setOption(styled(given.option()), { notMerge: true });
  };
  if (given.click) chart.on("click", given.click);
  plot.addEventListener("resized", () => chart.resize());
  observer.observe(plot);
  onTheme(redraw);
  printAsSvg(plot, () => styled(given.option()), chart);
  redraw();
  addExports(exporting, given, () => styled(given.option()), chart);
  return { chart, redraw, plot, sentence };
}

/** Buttons that store a chart as SVG, PNG and CSV. */
export function addExports(into, given, option, chart) {
  const button = (kind, call) => {
    const made = element("button", { type: "button", textContent: kind, onclick: call });
    made.setAttribute("aria-label", `${given.title} as ${kind}`);
    into.append(made);
  };
  const background = () => colours().card;
  button("SVG", () => download(`${given.id}.svg`, "image/svg+xml", svgOf({ ...option(), backgroundColor: background() }, chart.getWidth(), chart.getHeight())));
  button("PNG", () => download(`${given.id}.png`, "image/png", chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: background() })));
  button("CSV", () => download(`${given.id}.csv`, "text/csv", csvOf(given.csv())));
}

/** An option as SVG of this size in pixels. */
export function svgOf(option, width, height) {
  const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width, height });
  drawn.setOption(option);
  const text = drawn.renderToSVGString();
  drawn.dispose();
  return text;
}
