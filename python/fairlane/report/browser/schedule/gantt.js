/** Jobs as bars over time and hosts, a panel for each allocator; a job that is chosen stands out in all of them. */

import { element, labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { duration, escaped, number, percent } from "report/format";
import { barAt, barsOf, drawn } from "report/schedule/bars";
import { names, sizeClass, sizeNames } from "report/schedule/data";
import { PALETTE, colours, ramp } from "report/theme";

const PANEL = 190; // px
const TOP = 58;
const GAP = 40;
const NARROW = 520; // px below which titles are short
const HOUR = 3600;
const SHADES = [1, 0.8, 0.62]; // opacities, in turn, that tell neighbours apart
const { by_allocator: schedules, patterns, curve } = data.jobs;
const BY = {
  pattern: { title: "pattern", classes: patterns, of: (schedule, job) => schedule.pattern[job] },
  size: { title: "size", classes: sizeNames, of: (schedule, job) => sizeClass(schedule.hosts[job]) },
  slowdown: { title: "run slowdown", classes: ["up to 1.01", "to 1.05", "to 1.2", "to 1.5", "above 1.5"], of: (schedule, job) => [1.01, 1.05, 1.2, 1.5, Infinity].findIndex((most) => schedule.slowdown[job] <= most) },
};

const bars = schedules.map((schedule) => barsOf(schedule, HOUR));
const jobNumbers = schedules.map((schedule) => new Map(Array.from(schedule.job, (number_, at) => [number_, at])));

export function startGantt() {
  if (!bars.some(({ job }) => job.length)) return;
  let chosen = null; // number of a job in the log
  const slowed = schedules.some(({ slowdown }) => slowdown.some((value) => value !== 1));
  const options = Object.entries(BY).filter(([name]) => (name === "pattern" ? patterns.length : name !== "slowdown" || slowed));
  const by = selection("gantt-colours", options.map(([name, { title }]) => [name, title]), () => made.redraw());
  const find = element("input", { id: "gantt-job", type: "search", inputMode: "numeric", placeholder: "number" });
  const whole = element("button", { type: "button", textContent: "Whole schedule", onclick: () => zoom(first.begin, first.end) });
  const buttons = element("div", { className: "control" }, element("span", { textContent: "Time" }), whole);
  const details = element("div", { className: "details", role: "status" });
  const first = { begin: 0, end: bars.reduce((latest, { end }) => end.reduce((a, b) => Math.max(a, b), latest), 0) };
  const grids = () => names.map((_, at) => ({ left: 62, right: 16, top: TOP + at * (PANEL + GAP), height: PANEL }));
  const colourOfClass = (at) => (by.value === "slowdown" ? ramp(5)[at] : PALETTE[at % PALETTE.length]);

  /** The bars of a panel: an item for each colour and shade. */
  const panel = (at) => {
    const { classes, of } = BY[by.value];
    const groups = classes.map(() => SHADES.map(() => []));
    bars[at].job.forEach((job, bar) => groups[of(schedules[at], job)]?.[job % SHADES.length].push(bar));
    return {
      type: "custom", id: `bars-${at}`, name: names[at], silent: true, clip: true, xAxisIndex: at, yAxisIndex: at, data: classes.flatMap((_, kind) => SHADES.map((_shade, shade) => [kind, shade])),
      renderItem: (parameters, api) => {
        const [kind, shade] = [api.value(0), api.value(1)];
        return drawn(bars[at], parameters, api, groups[kind][shade], { fill: colourOfClass(kind), opacity: SHADES[shade] });
      },
    };
  };
  const barsOfChosen = (at) => [...bars[at].job.keys()].filter((bar) => schedules[at].job[bars[at].job[bar]] === chosen);
  const outlined = (at) => ({
    type: "custom", id: `chosen-${at}`, name: "chosen", silent: true, z: 6, clip: true, xAxisIndex: at, yAxisIndex: at, data: chosen === null || !jobNumbers[at].has(chosen) ? [] : [[0, 0]],
    renderItem: (parameters, api) => drawn(bars[at], parameters, api, barsOfChosen(at), { fill: "none", stroke: colours().ink, lineWidth: 2.5 }, 4),
  });

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
    height: () => TOP + names.length * (PANEL + GAP) + 50,
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
          { type: "slider", xAxisIndex: names.map((_, at) => at), startValue: shown.begin, endValue: shown.end, bottom: 4, height: 22, filterMode: "none", labelFormatter: (value) => `${number(value)} h`, textStyle: { color: ink }, throttle: 40 },
        ],
        series: [...names.map((_, at) => panel(at)), ...names.map((_, at) => outlined(at)), ...BY[by.value].classes.map((name, at) => ({ type: "scatter", name, color: colourOfClass(at), symbol: "rect", data: [] }))],
      };
    },
    csv: () => [["allocator", "job", "hosts", "pattern", "submit_s", "start_s", "end_s", "run_s", "slowdown", "lost_s"], ...schedules.flatMap((of, at) => Array.from(of.job, (job, row) => [names[at], job, of.hosts[row], of.pattern ? patterns[of.pattern[row]] : null, of.submit[row], of.start[row], of.end[row], of.run[row], of.slowdown[row], of.lost[row]]))],
  });
  made.chart.on("datazoom", () => {
    const [{ startValue, endValue }] = made.chart.getOption().dataZoom;
    Object.assign(shown, { begin: startValue, end: endValue });
  });
  /** Panel and job under a place of the plot, px; null where there is none. */
  function under(x, y) {
    const at = names.findIndex((_, number_) => made.chart.containPixel({ gridIndex: number_ }, [x, y]));
    if (at < 0) return null;
    const [time, place] = made.chart.convertFromPixel({ gridIndex: at }, [x, y]);
    const bar = barAt(bars[at], time, place);
    return bar < 0 ? null : { at, job: bars[at].job[bar] };
  }
  const hint = element("div", { className: "tip", hidden: true });
  made.plot.append(hint);
  const canvas = made.chart.getZr();
  canvas.on("mousemove", ({ offsetX: x, offsetY: y }) => {
    const found = under(x, y);
    hint.hidden = !found;
    if (!found) return;
    hint.innerHTML = tip(found.at, found.job);
    hint.style.left = `${Math.max(0, Math.min(x + 14, made.plot.clientWidth - hint.offsetWidth))}px`;
    hint.style.top = `${y + 14}px`;
  });
  canvas.on("globalout", () => { hint.hidden = true; });
  canvas.on("click", ({ offsetX: x, offsetY: y }) => {
    const found = under(x, y);
    if (found) pick(schedules[found.at].job[found.job]);
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
