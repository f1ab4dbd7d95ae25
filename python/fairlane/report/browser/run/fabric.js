/** The fabric: links in colours, hosts and switches; pan, zoom, hover, click and keys. */

import { addExports, printAsSvg, styled } from "report/chart";
import { data } from "report/data";
import { fabric, hostCount, jobs, jobsOfHost, linkCount, linkName, links, vertexName } from "report/run/data";
import { extent, isHost, nearest, pathOf, placeOf, segments, vertexCount } from "report/run/geometry";
import { startGestures } from "report/run/gestures";
import { choose, chosen, subscribe } from "report/run/state";
import { METRICS, highestSample, linkValues, overTime } from "report/run/values";
import { drawLegend, scaleOf } from "report/scale";
import { PALETTE, colours, onTheme } from "report/theme";

const BINS = 24; // colours of links; all links of one are drawn at once
const REACH = 8; // pixels from which a link is found
const MARGIN = 0.04;
const LEAST = 0.25; // percent of the axes that are seen at the highest zoom
const HOME = [[25, 75], [25, 75]]; // the whole fabric: around it is as much room again
const SVG = "http://www.w3.org/2000/svg";

const plot = document.getElementById("fabric-plot");
const legend = document.getElementById("fabric-legend");
const tip = document.getElementById("fabric-tip");
const chart = echarts.init(plot);
let scale = null;
let values = null;

const overlay = document.createElementNS(SVG, "svg");
overlay.setAttribute("aria-hidden", "true");
overlay.classList.add("overlay");
plot.append(overlay);

/** Bounds of both axes at which a unit is as long in x as in y, twice the size of what is seen at first. */
function bounds() {
  const [left, right, bottom, top] = extent;
  const [width, height] = [Math.max(right - left, 1e-6), Math.max(top - bottom, 1e-6)].map((one) => one * (1 + 2 * MARGIN));
  const unit = Math.max(width / chart.getWidth(), height / chart.getHeight());
  const [x, y] = [(left + right) / 2, (bottom + top) / 2];
  const [halfWidth, halfHeight] = [unit * chart.getWidth(), unit * chart.getHeight()];
  return { x: [x - halfWidth, x + halfWidth], y: [y - halfHeight, y + halfHeight] };
}

/** The pixels of a place as factors and offsets: x = a X + b, y = c Y + d. */
function transform() {
  const axes = { xAxisIndex: 0, yAxisIndex: 0 };
  const [x0, y0] = chart.convertToPixel(axes, [0, 0]);
  const [x1, y1] = chart.convertToPixel(axes, [1, 1]);
  return { a: x1 - x0, b: x0, c: y1 - y0, d: y0 };
}

/** Links as ECharts takes polylines: for each the number of its points, and these. */
const linesOf = (group) => Float64Array.from(group.flatMap((link) => {
  const path = pathOf(link);
  return [path.length, ...path.flat()];
}));

const dots = (vertices) => vertices.map(placeOf);
const range = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);
const hostsOf = (numbers) => [...new Set((numbers ?? []).flatMap((job) => jobs.hosts[job]))];

function seriesOfLinks() {
  values = linkValues();
  const metric = METRICS[chosen.metric];
  scale = scaleOf(overTime() && chosen.interval !== null ? [...values, highestSample(chosen.metric)] : values, BINS, chosen.difference);
  const { faint } = colours();
  const bins = Array.from({ length: BINS + 1 }, () => []);
  for (let link = 0; link < linkCount; link += 1) {
    const at = scale.of(values[link]);
    bins[at === null ? 0 : 1 + Math.min(BINS - 1, Math.floor(at * BINS))].push(link);
  }
  // Of a difference, the largest changes of either sign are drawn last.
  const rank = (bin) => (bin === 0 ? -1 : chosen.difference ? Math.abs(bin - 0.5 - BINS / 2) : bin);
  const width = Math.min(1.7, Math.max(0.7, 1800 / linkCount));
  drawLegend(legend, scale, `${metric.label}, ${chosen.difference ? "difference of " : ""}${metric.unit}`, metric.form);
  // ECharts cannot draw a large series without lines.
  return bins.map((group, bin) => group.length && ({
    id: `links-${bin}`, type: "lines", coordinateSystem: "cartesian2d", silent: true, polyline: true, large: true, largeThreshold: 0, progressive: 0,
    data: linesOf(group), z: 2 + rank(bin) / BINS,
    lineStyle: { color: bin === 0 ? faint : scale.colours[bin - 1], width: bin === 0 ? 0.6 * width : width * (1 + (0.9 * rank(bin)) / BINS), opacity: bin === 0 ? 0.55 : 0.95 },
  })).filter(Boolean);
}

function seriesOfVertices() {
  const { ink, muted } = colours();
  const spacing = Math.sqrt((chart.getWidth() * chart.getHeight()) / vertexCount);
  const size = Math.min(12, Math.max(2.5, spacing / 3.2));
  const scatter = (id, vertices, look) => ({
    id, type: "scatter", silent: true, large: vertices.length > 200, largeThreshold: 0, progressive: 0, data: dots(vertices), ...look,
  });
  const marked = (id, numbers, colour, symbol) => scatter(id, hostsOf(numbers), {
    symbol, symbolSize: Math.max(5, size), large: false, z: 6, itemStyle: { color: colour, borderColor: ink, borderWidth: 0.5 },
  });
  return [
    scatter("hosts", range(0, hostCount), { symbolSize: Math.max(1.6, 0.5 * size), z: 4, itemStyle: { color: muted } }),
    scatter("switches", range(hostCount, vertexCount), { symbol: "rect", symbolSize: size, z: 5, itemStyle: { color: ink } }),
    marked("aggressors", chosen.aggressor, PALETTE[1], "triangle"),
    marked("victims", chosen.victim, PALETTE[0], "circle"),
  ];
}

function option(zoom = zoomed()) {
  const { x, y } = bounds();
  const inside = (axis, [start, end]) => ({ type: "inside", [axis]: 0, filterMode: "none", disabled: true, start, end });
  return {
    ...styled({}),
    grid: { left: 0, right: 0, top: 0, bottom: 0 },
    xAxis: { type: "value", min: x[0], max: x[1], show: false },
    yAxis: { type: "value", min: y[0], max: y[1], show: false },
    dataZoom: [inside("xAxisIndex", zoom[0]), inside("yAxisIndex", zoom[1])],
    series: [...seriesOfLinks(), ...seriesOfVertices()],
  };
}

/** What part of both axes is seen, in percent. */
function zoomed() {
  const found = chart.getOption()?.dataZoom;
  return found ? found.map(({ start, end }) => [start, end]) : HOME;
}

function setZoom(zoom) {
  chart.dispatchAction({ type: "dataZoom", batch: zoom.map(([start, end], dataZoomIndex) => ({ dataZoomIndex, start, end })) });
}

/** Zooms by a factor about the middle, and moves by shares of what is seen. */
function move(factor, dx = 0, dy = 0) {
  setZoom(zoomed().map(([start, end], at) => {
    const middle = (start + end) / 2 + [dx, dy][at] * (end - start);
    return within(middle, (end - start) * factor);
  }));
}

/** What is seen about a middle, in percent, within the axes. */
function within(middle, wanted) {
  const span = Math.min(100, Math.max(LEAST, wanted));
  const from = Math.min(Math.max(0, middle - span / 2), 100 - span);
  return [from, from + span];
}

/** Shows what a gesture has moved into view. */
function commit({ scale: factor, x, y }) {
  const shares = [[-x, chart.getWidth()], [y - (1 - factor) * chart.getHeight(), chart.getHeight()]].map(([shift, size]) => shift / factor / size);
  setZoom(zoomed().map(([start, end], at) => {
    const span = end - start;
    return within(start + shares[at] * span + span / factor / 2, span / factor);
  }));
}

function drawOverlay(hovered) {
  overlay.replaceChildren();
  const { a, b, c, d } = transform();
  const { ink } = colours();
  const add = (name, properties) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
    overlay.append(made);
  };
  for (const { link, vertex, strong } of [{ ...hovered }, { link: chosen.link, vertex: chosen.vertex, strong: true }]) {
    if (link !== null && link !== undefined) {
      const points = pathOf(link).map(([x, y]) => `${a * x + b},${c * y + d}`).join(" ");
      add("polyline", { points, fill: "none", stroke: ink, "stroke-width": strong ? 7 : 5, "stroke-opacity": 0.35, "stroke-linecap": "round" });
      add("polyline", { points, fill: "none", stroke: strong ? PALETTE[1] : ink, "stroke-width": strong ? 3 : 2 });
    }
    if (vertex !== null && vertex !== undefined) {
      const [x, y] = placeOf(vertex);
      add("circle", { cx: a * x + b, cy: c * y + d, r: 9, fill: "none", stroke: strong ? PALETTE[1] : ink, "stroke-width": 2.5 });
    }
  }
}

const jobNames = (numbers) => numbers.map((job) => jobs.name[job]).join(", ");

function words({ link, vertex }) {
  if (link !== undefined) return `${linkName(link)}: ${METRICS[chosen.metric].label.toLowerCase()} ${METRICS[chosen.metric].form(values[link])}`;
  if (!isHost(vertex)) return `${vertexName(vertex)}: switch`;
  const here = jobsOfHost.get(vertex);
  return `${vertexName(vertex)}: host${here ? ` of ${jobNames(here)}` : ", no job"}`;
}

function find(event) {
  const { a, b, c, d } = transform();
  return nearest((event.offsetX - b) / a, (event.offsetY - d) / c, REACH / Math.abs(a));
}

function hover(event) {
  const found = find(event);
  const any = found.link !== undefined || found.vertex !== undefined;
  tip.hidden = !any;
  plot.style.cursor = any ? "pointer" : "grab";
  drawOverlay(found);
  if (!any) return;
  tip.textContent = words(found);
  const left = Math.min(event.offsetX + 14, plot.clientWidth - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, event.offsetY - tip.offsetHeight - 10)}px`;
}

const MOVES = { ArrowLeft: [1, -0.1, 0], ArrowRight: [1, 0.1, 0], ArrowUp: [1, 0, 0.1], ArrowDown: [1, 0, -0.1], "+": [0.8], "=": [0.8], "-": [1.25] };

function press(event) {
  if (event.key === "0") setZoom(HOME);
  else if (event.key === "Escape") choose({ link: null, vertex: null });
  else if (MOVES[event.key] && !event.ctrlKey && !event.metaKey) move(...MOVES[event.key]);
  else return;
  event.preventDefault();
}

/** Centres the view on a link or vertex. */
export function show({ link = null, vertex = null }) {
  const at = vertex === null ? [0, 1].map((axis) => (segments[4 * link + axis] + segments[4 * link + axis + 2]) / 2) : placeOf(vertex);
  const { x, y } = bounds();
  setZoom(zoomed().map(([start, end], axis) => {
    const [low, high] = axis ? y : x;
    const span = end - start;
    return within((100 * (at[axis] - low)) / (high - low), span);
  }));
}

export const zoomBy = (factor) => move(factor);
export const reset = () => setZoom(HOME);
export const currentValues = () => values;

/** Draws all anew: ECharts merges typed arrays element by element, so data of another length cannot be merged. */
function redraw() {
  chart.setOption(option(), { notMerge: true });
  drawOverlay();
}

function rows() {
  const head = ["link", "from", "to", "role", "bandwidth_bps", "active_share", "stalled_share", "mean_queue", "bytes", chosen.metric === "jobs" ? "queueing_s" : "value"];
  const { measured } = data;
  return [head, ...range(0, linkCount).map((link) => [
    linkName(link), vertexName(links.from[link]), vertexName(links.to[link]), fabric.roles[links.role[link]], fabric.bandwidths[links.bandwidth[link]],
    measured?.active[link], measured?.stalled[link], measured?.queue[link], measured?.bytes[link], values[link],
  ])];
}

export function startFabric() {
  redraw();
  const zr = chart.getZr();
  const moving = startGestures(plot, commit);
  zr.on("mousemove", (event) => {
    if (moving()) tip.hidden = true;
    else hover(event);
  });
  zr.on("globalout", () => {
    tip.hidden = true;
    drawOverlay();
  });
  zr.on("click", (event) => {
    const { link = null, vertex = null } = find(event);
    choose({ link, vertex });
  });
  chart.on("datazoom", () => drawOverlay());
  plot.addEventListener("keydown", press);
  new ResizeObserver(() => {
    chart.resize();
    redraw();
  }).observe(plot);
  onTheme(redraw);
  printAsSvg(plot, () => option(), chart);
  subscribe(["metric", "victim", "aggressor", "interval", "difference"], redraw);
  subscribe(["link", "vertex"], () => drawOverlay());
  addExports(document.getElementById("fabric-export"), { id: "fabric", title: "Fabric", csv: rows }, () => option(), chart);
}

