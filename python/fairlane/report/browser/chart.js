/** A figure: a card with a chart of ECharts, and its export as SVG, PNG and CSV. */

import { card, csvButton, download, element, exportButton } from "report/card";
import { colours, onTheme } from "report/theme";

const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) target.dispatchEvent(new CustomEvent("resized"));
});

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
 * @param {object} given What `card` takes, `option(width)` (ECharts, for a chart of this width in pixels), `csv()` (rows), and if wanted `height()` and `width()`
 *   in pixels, `click(parameters)`, and `responsive`, whether
 *   the option depends on the width.
 * @returns {{chart: object, redraw: function(): void}} The chart, and what draws it anew.
 */
export function figure(given) {
  const { section, body, exporting, sentence } = card(given);
  const plot = element("div", { className: "plot", id: `${given.id}-plot` });
  body.append(plot);
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-labelledby", sentence.id);

  const size = () => {
    plot.style.height = `${given.height?.() ?? 320}px`;
    plot.style.minWidth = given.width ? `${given.width()}px` : "";
  };
  size();
  const chart = echarts.init(plot);
  const option = () => styled(given.option(plot.clientWidth));
  const redraw = () => {
    size();
    chart.resize();
    chart.setOption(option(), { notMerge: true });
  };
  if (given.click) chart.on("click", given.click);
  plot.addEventListener("resized", () => (given.responsive ? redraw() : chart.resize()));
  observer.observe(plot);
  onTheme(redraw);
  printAsSvg(plot, option, chart);
  redraw();
  addExports(exporting, given, option, chart);
  return { chart, redraw, plot, sentence, section };
}

/** Buttons that store a chart as SVG, PNG and CSV. */
export function addExports(into, given, option, chart) {
  const background = () => colours().card;
  exportButton(into, given.title, "SVG", () => download(`${given.id}.svg`, "image/svg+xml", svgOf({ ...option(), backgroundColor: background() }, chart.getWidth(), chart.getHeight())));
  exportButton(into, given.title, "PNG", () => download(`${given.id}.png`, "image/png", chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: background() })));
  csvButton(into, given);
}

/** An option as SVG of this size in pixels. */
export function svgOf(option, width, height) {
  const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width, height });
  drawn.setOption(option);
  const text = drawn.renderToSVGString();
  drawn.dispose();
  return text;
}
