/** Figures of a run in progress: made when there is something to show, drawn anew when that changes. */

import { changeAxis, LEFT, nameAxis } from "report/axes";
import { card, element } from "report/card";
import { figure } from "report/chart";
import { escaped, number, percent, seconds, timeTick } from "report/format";
import { onTheme, PALETTE } from "report/theme";
import { matrixFigure } from "serve/matrix";

const MOST_LINES = 12;
const MOST_ROWS = 200;
let state = null;
const made = new Map(); // by id: what redraws a figure, and the data that it shows

/** Whether the pointer is on a figure: it stands still then, so that its tooltip stays. */
const looked = (plot) => window.matchMedia("(hover: hover)").matches && plot.matches(":hover");

/** Shows a figure if there are data, and draws it anew if these have changed. */
function keep(id, data, make) {
  if (!data) return;
  const text = JSON.stringify(data);
  const known = made.get(id);
  if (!known) made.set(id, { ...make(), text });
  else if (known.text !== text && !looked(known.plot)) {
    known.text = text;
    known.sentence.textContent = known.words();
    known.redraw();
  }
}

const with_ = (given) => ({ ...figure({ ...given, sentence: given.words() }), words: given.words });

function course() {
  const { history, progress: now } = state;
  const rows = history.elapsed_s.map((at, row) => [at, history.hops_per_s[row], history.simulated_s[row]]);
  return now.hops_per_s === null ? rows : [...rows, [now.elapsed_s, now.hops_per_s, now.simulated_s]];
}

const speed = () => with_({
  id: "live-speed", title: "Speed of the co-run",
  words: () => {
    const rates = course().map(([, rate]) => rate);
    return `Between ${(Math.min(...rates) / 1e6).toFixed(2)} and ${(Math.max(...rates) / 1e6).toFixed(2)} million packet-hops per second of wall time.`;
  },
  option: () => ({
    grid: { left: 64, right: 24, top: 16, bottom: 46 },
    tooltip: { trigger: "axis", formatter: ([{ value: [at, rate, simulated] }]) => `${number(at)} s after the start<br>${(rate / 1e6).toFixed(2)} M packet-hops/s<br>${seconds(simulated)} simulated` },
    xAxis: { type: "value", name: "wall time, s", max: "dataMax", axisLabel: { hideOverlap: true, formatter: number } },
    yAxis: { type: "value", name: "million packet-hops/s", min: 0, nameGap: 40, axisLabel: { formatter: (value) => number(value / 1e6) } },
    series: [{ type: "line", showSymbol: course().length < 3, symbolSize: 4, color: PALETTE[0], lineStyle: { width: 1.6 }, areaStyle: { opacity: 0.12 }, data: course() }],
  }),
  csv: () => [["elapsed_s", "packet_hops_per_s", "simulated_s"], ...course()],
});

/** Rows of jobs that can be compared, those slowed down most first. */
const compared = () => state.jobs.w.map((value, job) => ({ job, name: state.jobs.name[job], value }))
  .filter(({ value }) => value !== null).sort((a, b) => a.value - b.value).slice(0, MOST_ROWS);

function slowdown() {
  const axis = () => nameAxis(compared().map(({ name }) => name));
  return with_({
    id: "live-w", title: "Throughput change against the isolated run (W), so far",
    words: () => {
      const [worst] = compared();
      return `${worst.name} is slowed down most so far: W ${percent(worst.value, true)}.`;
    },
    note: "Over all iterations that the co-run and the isolated run have both completed. The report leaves out the warm-up, and has intervals.",
    height: () => axis().height,
    option: () => {
      const { height, ...parts } = axis();
      const rows = compared();
      return {
        grid: { ...LEFT, top: 16 }, ...parts,
        xAxis: { ...changeAxis, name: "W" },
        tooltip: { formatter: ({ dataIndex }) => `<b>${escaped(rows[dataIndex].name)}</b><br>W ${percent(rows[dataIndex].value, true)}` },
        series: [{ type: "bar", barMaxWidth: 14, color: PALETTE[0], data: rows.map(({ value }) => value) }],
      };
    },
    csv: () => [["job", "w"], ...compared().map(({ name, value }) => [name, value])],
  });
}

const lines = () => state.jobs.at_s.map((at, job) => ({ job, at, each: state.jobs.time_s[job] })).filter(({ at }) => at.length).slice(0, MOST_LINES);

const iterations = () => with_({
  id: "live-iterations", title: "Time per iteration",
  words: () => `When jobs completed iterations, and how long these took.${state.jobs.name.length > MOST_LINES ? ` The first ${MOST_LINES} jobs.` : ""}`,
  option: () => ({
    grid: { left: 84, right: 24, top: 34, bottom: 46 }, legend: { top: 0, type: "scroll" },
    tooltip: { formatter: ({ seriesName, value }) => `<b>${escaped(seriesName)}</b><br>${seconds(value[1])} per iteration, ${seconds(value[0])} after the start` },
    xAxis: { type: "value", name: "simulated time", max: "dataMax", axisLabel: { formatter: timeTick, hideOverlap: true } },
    yAxis: { type: "value", name: "time per iteration", nameGap: 62, min: 0, axisLabel: { formatter: timeTick } },
    series: lines().map(({ job, at, each }, index) => ({
      type: "line", name: state.jobs.name[job], showSymbol: false, color: PALETTE[index % PALETTE.length],
      lineStyle: { width: 1.6, type: index < PALETTE.length ? "solid" : "dashed" }, data: at.map((x, row) => [x, each[row]]),
    })),
  }),
  csv: () => [["job", "completed_s", "time_per_iteration_s"], ...lines().flatMap(({ job, at, each }) => at.map((x, row) => [state.jobs.name[job], x, each[row]]))],
});

/** A card with a table; it is filled anew with each state. */
function tableOf(id, title, headings, wide = false) {
  const shown = card({ id, title, wide });
  const body = element("tbody");
  shown.body.append(element("table", {}, element("thead", {}, element("tr", {}, ...headings.map((text) => element("th", { textContent: text, scope: "col" })))), body));
  return { plot: shown.section, sentence: shown.sentence, body };
}

function fill(body, rows) {
  body.replaceChildren(...rows.map((cells) => element("tr", {}, ...cells.map((text) => element("td", { textContent: text })))));
}

function jobs() {
  const shown = tableOf("live-jobs", "Jobs", ["job", "workload", "ranks", "iterations", "time per iteration", "iterations/s", "W"], true);
  const words = () => {
    const count = state.jobs.name.length;
    return count > MOST_ROWS ? `The first ${MOST_ROWS} of ${number(count)} jobs. Rates are in simulated time.` : "Rates are in simulated time.";
  };
  const redraw = () => {
    const { name, workload, ranks, iterations: done, seconds_per_iteration: pace, w } = state.jobs;
    fill(shown.body, name.slice(0, MOST_ROWS).map((one, job) => {
      const each = pace[job] ?? null;
      return [one, workload[job], number(ranks[job]), done[job] === undefined ? "–" : number(done[job]), seconds(each), each ? number(1 / each) : "–", percent(w[job] ?? null, true)];
    }));
  };
  shown.sentence.textContent = words();
  redraw();
  return { ...shown, redraw, words };
}

function links() {
  const shown = tableOf("live-links", "Busiest links", ["link", "utilisation", "stalled"]);
  const words = () => `Shares of the simulated time up to ${seconds(state.measured_s)}.`;
  const redraw = () => fill(shown.body, state.links.name.map((name, row) => [name, percent(state.links.active_share[row]), percent(state.links.stalled_share[row])]));
  shown.sentence.textContent = words();
  redraw();
  return { ...shown, redraw, words };
}

/** Shows a state. */
export function showFigures(now) {
  state = now;
  keep("speed", course().length > 1 && course(), speed);
  keep("links", state.links.name.length > 0 && [state.links, state.measured_s], links);
  keep("jobs", state.jobs, jobs);
  keep("matrix", state.matrix.victim.length > 0 && state.matrix, () => matrixFigure(() => state));
  keep("w", state.jobs.w.some((w) => w !== null) && state.jobs.w, slowdown);
  keep("iterations", lines().length > 0 && state.jobs.at_s, iterations);
}

onTheme(() => { for (const one of made.values()) one.redraw(); });
