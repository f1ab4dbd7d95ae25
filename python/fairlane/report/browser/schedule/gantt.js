/** Jobs as bars over time and hosts, a panel for each allocator; a job that is chosen stands out in all of them. */

import { element, labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { duration, escaped, number, percent } from "report/format";
import { names, sizeClass, sizeNames } from "report/schedule/data";
import { PALETTE, colours, ramp } from "report/theme";

const PANEL = 190; // px
const TOP = 58;
const GAP = 40;
const NARROW = 520; // px below which titles are short
const HOUR = 3600;
const THIN = 0.3; // px below which a bar is not drawn
const SHADES = [1, 0.8, 0.62]; // opacities, in turn, that tell neighbours apart
const { by_allocator: schedules, patterns, curve } = data.jobs;
const BY = {
  pattern: { title: "pattern", classes: patterns, of: (schedule, job) => schedule.pattern[job] },
  size: { title: "size", classes: sizeNames, of: (schedule, job) => sizeClass(schedule.hosts[job]) },
  slowdown: { title: "run slowdown", classes: ["up to 1.01", "to 1.05", "to 1.2", "to 1.5", "above 1.5"], of: (schedule, job) => [1.01, 1.05, 1.2, 1.5, Infinity].findIndex((most) => schedule.slowdown[job] <= most) },
};

/** Bars of a schedule: begin and end, h; lowest place and the one above the highest; job. */
const bars = schedules.map((schedule) => Array.from(schedule.bar_job, (job, at) => [schedule.start[job] / HOUR, schedule.end[job] / HOUR, schedule.bar_low[at], schedule.bar_high[at], job]));
const jobNumbers = schedules.map((schedule) => new Map(Array.from(schedule.job, (number_, at) => [number_, at])));

export function startGantt() {
  if (!bars.some((one) => one.length)) return;
  let chosen = null; // number of a job in the log
  const slowed = schedules.some(({ slowdown }) => slowdown.some((value) => value !== 1));
  const options = Object.entries(BY).filter(([name]) => (name === "pattern" ? patterns.length : name !== "slowdown" || slowed));
  const by = selection("gantt-colours", options.map(([name, { title }]) => [name, title]), () => made.redraw());
  const find = element("input", { id: "gantt-job", type: "search", inputMode: "numeric", placeholder: "number" });
  const whole = element("button", { type: "button", textContent: "Whole schedule", onclick: () => zoom(first.begin, first.end) });
  const buttons = element("div", { className: "control" }, element("span", { textContent: "Time" }), whole);
  const details = element("div", { className: "details", role: "status" });
  const ends = bars.flat();
  const first = { begin: 0, end: ends.reduce((latest, [, end]) => Math.max(latest, end), 0) };
  const grids = () => names.map((_, at) => ({ left: 62, right: 16, top: TOP + at * (PANEL + GAP), height: PANEL }));
  const colourOfClass = (at) => (by.value === "slowdown" ? ramp(5)[at] : PALETTE[at % PALETTE.length]);

  /** Rectangles of a panel. */
  const panel = (at) => ({
    type: "custom", id: `bars-${at}`, name: names[at], xAxisIndex: at, yAxisIndex: at, data: bars[at], dimensions: ["begin", "end", "low", "high", "job"],
    encode: { x: [0, 1], y: [2, 3], tooltip: [] }, clip: true, progressive: 4000,
    renderItem: (_, api) => rectangle(api, { fill: colourOfClass(BY[by.value].of(schedules[at], api.value(4))), opacity: SHADES[api.value(4) % SHADES.length] }),
  });
  const outlined = (at) => ({
    type: "custom", id: `chosen-${at}`, name: "chosen", silent: true, z: 6, xAxisIndex: at, yAxisIndex: at, clip: true, encode: { x: [0, 1], y: [2, 3] },
    data: chosen === null ? [] : bars[at].filter(([, , , , job]) => schedules[at].job[job] === chosen),
    renderItem: (_, api) => rectangle(api, { fill: "none", stroke: colours().ink, lineWidth: 2.5 }, 4),
  });
  function rectangle(api, style, least = 0) {
    const [x, bottom] = api.coord([api.value(0), api.value(2)]);
    const [end, top] = api.coord([api.value(1), api.value(3)]);
    const width = Math.max(end - x, least);
    return width < THIN ? null : { type: "rect", shape: { x, y: top, width: width > 4 ? width - 0.6 : width, height: Math.max(bottom - top - 0.4, 0.6) }, style };
  }

  function pick(job) {
    chosen = job;
    made.chart.setOption({ series: names.map((_, at) => outlined(at)) });
    describe();
  }
  function describe() {
    if (chosen === null) return details.replaceChildren(element("p", { className: "note", textContent: "Click a bar, or type the number of a job, to see it under every allocator." }));
    const rows = names.map((name, at) => [name, jobNumbers[at].get(chosen), schedules[at]]).filter(([, job]) => job !== undefined);
    if (!rows.length) return details.replaceChildren(element("p", { textContent: `No job has the number ${chosen}.` }));
    const [, job, schedule] = rows[0];
    const pattern = patterns.length && patterns[schedule.pattern[job]] ? `, ${patterns[schedule.pattern[job]]}` : "";
    const head = element("h3", { textContent: `Job ${chosen}: ${number(schedule.hosts[job])} hosts${pattern}` });
    const cell = (text) => element("td", { textContent: text });
    const lines = rows.map(([name, at, of]) => element("tr", {}, ...[name, duration(of.start[at] - of.submit[at]), duration(of.end[at] - of.start[at]), of.slowdown[at].toFixed(3), duration(of.lost[at])].map(cell)));
    const heads = ["allocator", "wait", "ran", "slowdown", "lost to neighbours"].map((text) => element("th", { textContent: text, scope: "col" }));
    return details.replaceChildren(head, element("p", { className: "note", textContent: `Submitted after ${duration(schedule.submit[job])}; run time of the log ${duration(schedule.run[job])}.` }), element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines)));
  }
  const shown = { begin: data.jobs.window_h[0], end: data.jobs.window_h[1] };
  function zoom(begin, end) {
    made.chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, startValue: begin, endValue: end });
  }
  const left = schedules.reduce((sum, { left_out: out }) => sum + out, 0);
  const made = figure({
    id: "gantt", wide: true, title: "Jobs over time", sentence: data.sentences.gantt, controls: [labelled("Colours", by), labelled("Find job", find), buttons],
    note: `A bar is a job on hosts that follow each other; what is free is empty.${curve ? " Hosts stand along Hilbert's curve through the grid." : ""} Move and stretch the slider for other times.${left ? ` ${number(left)} jobs that begin last are left out.` : ""}`,
    height: () => TOP + names.length * (PANEL + GAP) + 50, click: ({ seriesId, value }) => seriesId?.startsWith("bars-") && pick(schedules[Number(seriesId.slice(5))].job[value[4]]),
    responsive: true,
    option: (width = 1000) => {
      const { ink, muted } = colours();
      const short = width < NARROW;
      const last = names.length - 1;
      return {
        title: names.map((name, at) => ({ text: `${name}: utilisation ${percent(data.allocators[at].utilisation)}${slowed && !short ? `, mean slowdown ${data.allocators[at].mean_slowdown.toFixed(3)}` : ""}`, left: 62, top: TOP + at * (PANEL + GAP) - 21, textStyle: { fontSize: 13, color: ink } })),
        grid: grids(), legend: { top: 0, type: "scroll", data: BY[by.value].classes, selectedMode: false },
        xAxis: names.map((_, at) => ({ type: "value", gridIndex: at, min: first.begin, max: first.end, name: at === last ? "time, h" : "", nameGap: 24, axisLabel: { color: muted, hideOverlap: true, formatter: number, showMinLabel: false, showMaxLabel: false } })),
        yAxis: names.map((_, at) => ({ type: "value", gridIndex: at, min: 0, max: data.hosts, name: "host", nameGap: 40, interval: data.hosts / 4, axisLabel: { formatter: (value) => number(Math.round(value)) } })),
        dataZoom: [
          { type: "slider", xAxisIndex: names.map((_, at) => at), startValue: shown.begin, endValue: shown.end, bottom: 4, height: 22, filterMode: "weakFilter", labelFormatter: (value) => `${number(value)} h`, textStyle: { color: ink }, throttle: 40 },
        ],
        tooltip: { formatter: ({ seriesId, value }) => (seriesId?.startsWith("bars-") ? tip(Number(seriesId.slice(5)), value[4]) : "") },
        series: [...names.map((_, at) => panel(at)), ...names.map((_, at) => outlined(at)), ...BY[by.value].classes.map((name, at) => ({ type: "scatter", name, color: colourOfClass(at), symbol: "rect", data: [] }))],
      };
    },
    csv: () => [["allocator", "job", "hosts", "pattern", "submit_s", "start_s", "end_s", "run_s", "slowdown", "lost_s"], ...schedules.flatMap((of, at) => Array.from(of.job, (job, row) => [names[at], job, of.hosts[row], of.pattern ? patterns[of.pattern[row]] : null, of.submit[row], of.start[row], of.end[row], of.run[row], of.slowdown[row], of.lost[row]]))],
  });
  made.chart.on("datazoom", () => {
    const [{ startValue, endValue }] = made.chart.getOption().dataZoom;
    Object.assign(shown, { begin: startValue, end: endValue });
  });
  made.plot.parentElement.after(details);
  find.addEventListener("input", () => pick(find.value === "" ? null : Number(find.value)));
  describe();

  function tip(at, job) {
    const of = schedules[at];
    const pattern = patterns.length && patterns[of.pattern[job]] ? `, ${escaped(patterns[of.pattern[job]])}` : "";
    return `<b>job ${of.job[job]}</b>, ${escaped(names[at])}<br>${number(of.hosts[job])} hosts${pattern}<br>waited ${duration(of.start[job] - of.submit[job])}, ran ${duration(of.end[job] - of.start[job])}<br>run slowdown ${of.slowdown[job].toFixed(3)}`;
  }
}
