/** Figures by job: W, latencies, iterations, MPI calls, power. */

import { LEFT, logarithmicEnds, nameAxis, percentAxis } from "report/axes";
import { element, labelled } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, number, percent, seconds, timeTick } from "report/format";
import { jobs } from "report/run/data";
import { choose, chosen, opacity, standsOut, subscribe } from "report/run/state";
import { PALETTE, colours } from "report/theme";
import { whiskers } from "report/whiskers";

const MOST_LINES = 12; // jobs whose iterations are drawn if none is chosen
const LINES = ["solid", "dashed", "dotted"]; // of the jobs of one workload
const workloads = [...new Set(jobs.workload)];
const colourOfWorkload = (name) => PALETTE[workloads.indexOf(name) % PALETTE.length];
/** The colour of a job in all cards: that of its workload. */
const colourOf = (job) => colourOfWorkload(jobs.workload[job]);
const placeAmongAlike = (job) => jobs.workload.slice(0, job).filter((name) => name === jobs.workload[job]).length;

/** Chooses the job of a row as the victim. */
const chooseRow = (rows) => ({ dataIndex, seriesType }) => {
  const row = rows()[dataIndex];
  if (row && seriesType !== "custom") choose({ victim: [row.job], aggressor: null, ...(data.by_jobs ? { metric: "jobs" } : {}) });
};

/** Bars of rows in the colours of their workloads, with a legend and whiskers; `look` is a row's style. */
function byWorkload(rows, look) {
  const shown = workloads.filter((name) => rows.some(({ job }) => jobs.workload[job] === name));
  const bars = shown.map((name) => ({
    type: "bar", name, stack: "one", barMaxWidth: 14, color: colourOfWorkload(name),
    data: rows.map((row) => (jobs.workload[row.job] === name ? { value: row.value, itemStyle: look(row) } : null)),
  }));
  return { legend: { top: 0, type: "scroll", data: shown }, series: [...bars, whiskers(rows)] };
}

/** A figure that is drawn anew when jobs are chosen. */
function jobFigure(given) {
  const made = figure(given);
  subscribe(["victim", "aggressor"], made.redraw);
  return made;
}

function slowdown() {
  const rows = () => jobs.name.map((name, job) => ({ name, job, value: jobs.w[job], low: jobs.w_low[job], high: jobs.w_high[job] }))
    .filter(({ value }) => value !== null).sort((a, b) => a.value - b.value);
  if (!data.sentences.slowdown) return;
  const axis = () => nameAxis(rows().map(({ name }) => name));
  jobFigure({
    id: "slowdown", title: "Throughput change against the isolated run (W)", sentence: data.sentences.slowdown,
    note: "Whiskers: 95% interval. Colour: workload. Pale with dashes: fewer than ten iterations.",
    height: () => axis().height,
    click: chooseRow(rows),
    option: () => {
      const { height, ...parts } = axis();
      return {
        grid: LEFT, ...parts, xAxis: { ...percentAxis, name: "W" },
        tooltip: { formatter: ({ dataIndex }) => tip(rows()[dataIndex]) },
        ...byWorkload(rows(), ({ job }) => ({ opacity: opacity(job) * (jobs.few[job] ? 0.55 : 1), ...(jobs.few[job] && { borderType: "dashed", borderColor: colours().ink, borderWidth: 1 }) })),
      };
    },
    csv: () => [["job", "workload", "w", "w_low", "w_high", "few_iterations"], ...rows().map(({ job, name, value, low, high }) => [name, jobs.workload[job], value, low, high, jobs.few[job]])],
  });
  function tip({ job, name, value, low, high }) {
    const interval = low === null ? "no interval" : `95% interval ${percent(low, true)} to ${percent(high, true)}`;
    return `<b>${escaped(name)}</b> (${escaped(jobs.workload[job])})<br>W ${percent(value, true)}<br>${interval}${jobs.few[job] ? "<br>fewer than ten iterations" : ""}`;
  }
}

const QUANTILES = { p50: "median", p90: "90%", p99: "99%", p999: "99.9%" };
const SYMBOLS = { p50: "circle", p90: "rect", p99: "triangle", p999: "diamond" };

function latency() {
  const table = data.latency?.quantiles;
  if (!table?.job.length) return;
  const several = new Set(table.kind).size > 1;
  const rows = () => table.job.map((job, at) => ({ job, at, name: several ? `${jobs.name[job]} ${table.kind[at]}` : jobs.name[job], value: table.p99[at] })).sort((a, b) => b.value - a.value);
  const axis = () => nameAxis(rows().map(({ name }) => name));
  const ends = () => logarithmicEnds([...table.p50, ...table.p999]);
  jobFigure({
    id: "latency", title: "Message latency", sentence: data.sentences.latency, height: () => axis().height, click: chooseRow(rows),
    note: "Quantiles of the latency of messages; logarithmic. Whiskers: 95% interval of the 99% quantile.",
    option: () => {
      const { height, ...parts } = axis();
      return {
        grid: LEFT, ...parts, legend: { top: 0, data: Object.values(QUANTILES) }, xAxis: { type: "log", name: "latency", ...ends(), axisLabel: { formatter: timeTick, hideOverlap: true } },
        tooltip: { formatter: ({ dataIndex, seriesName }) => tip(rows()[dataIndex], seriesName) },
        series: [
          ...Object.entries(QUANTILES).map(([quantile, name], number_) => ({
            type: "scatter", name, symbol: SYMBOLS[quantile], symbolSize: 9, color: PALETTE[[5, 0, 1, 2][number_]],
            data: rows().map(({ job, at }, y) => ({ value: [table[quantile][at], y], itemStyle: { opacity: opacity(job) } })),
          })),
          whiskers(rows().map(({ at }) => ({ low: table.p99_low[at], high: table.p99_high[at] }))),
        ],
      };
    },
    csv: () => {
      const columns = ["count", "mean", "min", "max", ...Object.keys(QUANTILES), ...Object.keys(QUANTILES).flatMap((name) => [`${name}_low`, `${name}_high`])];
      return [["job", "kind", ...columns.map((name) => (name === "count" ? name : `${name}_s`))], ...table.job.map((job, at) => [jobs.name[job], table.kind[at], ...columns.map((name) => table[name][at])])];
    },
  });
  function tip({ name, at }, quantile) {
    const lines = Object.entries(QUANTILES).map(([key, word]) => {
      const text = `${word}: ${seconds(table[key][at])}`;
      return word === quantile ? `<b>${text}</b>` : text;
    });
    return `<b>${escaped(name)}</b> (${number(table.count[at])} messages)<br>${lines.join("<br>")}`;
  }
}

function histogram() {
  const found = data.latency?.histogram;
  if (!found?.job.length) return;
  const bounds = found.bounds_s;
  const ends = logarithmicEnds([bounds[0], bounds.at(-1)]);
  /** Counts by bucket of some jobs, or of all. */
  const counts = (wanted) => {
    const sums = new Float64Array(bounds.length - 1);
    found.job.forEach((job, row) => { if (!wanted || wanted.includes(job)) sums[found.bucket[row]] += found.count[row]; });
    return sums;
  };
  const lines = () => {
    const several = [...new Set([...(chosen.victim ?? []), ...(chosen.aggressor ?? [])])].slice(0, MOST_LINES);
    return [{ name: "all jobs", wanted: null }, ...several.map((job) => ({ name: jobs.name[job], wanted: [job] }))];
  };
  const exceeding = (sums) => {
    const total = sums.reduce((sum, one) => sum + one, 0);
    let rest = total;
    return Array.from(sums, (one, at) => {
      rest -= one;
      return [bounds[at + 1], total ? rest / total : 0];
    }).filter(([, share]) => share > 0);
  };
  jobFigure({
    id: "histogram", title: "Distribution of message latency", sentence: data.sentences.histogram,
    note: "Share of messages whose latency is above the value; both axes are logarithmic. Choose jobs to compare them with all.",
    option: () => ({
      grid: { left: 64, right: 24, top: 34, bottom: 46 }, legend: { top: 0, type: "scroll" }, tooltip: { trigger: "axis", valueFormatter: (value) => percent(value) , axisPointer: { label: { formatter: ({ value }) => seconds(value) } } },
      xAxis: { type: "log", name: "latency", ...ends, axisLabel: { formatter: timeTick, hideOverlap: true } },
      yAxis: { type: "log", name: "share of messages above", nameGap: 48, axisLabel: { formatter: (value) => `${number(100 * value)}%` } },
      series: lines().map(({ name, wanted }, at) => ({ type: "line", name, step: "start", showSymbol: false, color: at ? PALETTE[(at - 1) % PALETTE.length] : colours().muted, data: exceeding(counts(wanted)) })),
    }),
    csv: () => [["job", "from_s", "to_s", "count"], ...jobs.name.flatMap((name, job) => {
      const sums = counts([job]);
      return Array.from(sums, (count, at) => [name, bounds[at], bounds[at + 1], count]).filter(([, , , count]) => count > 0);
    })],
  });
}

function iterations() {
  if (!data.sentences.iterations) return;
  const longest = (job) => data.iterations[job].time_s.length;
  const shown = () => {
    const all = jobs.name.map((_, job) => job).filter((job) => longest(job) > 0);
    const wanted = all.filter(standsOut);
    return (wanted.length ? wanted : all).slice(0, MOST_LINES);
  };
  const total = jobs.name.filter((_, job) => longest(job) > 0).length;
  if (!total) return;
  jobFigure({
    id: "iterations", title: "Time per iteration", sentence: data.sentences.iterations,
    note: `When a job completed an iteration, and how long it took. Colour: workload.${total > MOST_LINES ? ` Of ${total} jobs the first ${MOST_LINES}, or those that are chosen.` : ""}`,
    option: () => ({
      grid: { left: 84, right: 24, top: 34, bottom: 46 }, legend: { top: 0, type: "scroll" },
      tooltip: { formatter: ({ seriesName, value }) => `<b>${escaped(seriesName)}</b>, iteration ${value[2]}<br>${seconds(value[1])}, completed ${seconds(value[0])} after the start` },
      xAxis: { type: "value", name: "time after the start", axisLabel: { formatter: timeTick, hideOverlap: true } },
      yAxis: { type: "value", name: "time per iteration", nameGap: 62, min: 0, axisLabel: { formatter: timeTick } },
      series: shown().map((job) => {
        const { at_s: x, time_s: y, iteration } = data.iterations[job];
        return { type: "line", name: jobs.name[job], symbolSize: 4, showSymbol: y.length < 80, color: colourOf(job), lineStyle: { width: 1.6, type: LINES[placeAmongAlike(job) % LINES.length] }, data: x.map((one, row) => [one, y[row], iteration[row]]) };
      }),
    }),
    csv: () => [["job", "iteration", "completed_s", "time_per_iteration_s"], ...data.iterations.flatMap(({ iteration, at_s: at, time_s: time }, job) => iteration.map((one, row) => [jobs.name[job], one, at[row], time[row]]))],
  });
}

function calls() {
  if (!data.sentences.calls) return;
  const kinds = Object.entries(data.calls.calls);
  const select = element("select", { id: "calls-by" });
  for (const [value, text] of [["call", "MPI call"], ["cause", "cause of waits"]]) select.append(element("option", { value, textContent: text }));
  const communication = jobs.communication_share;
  const parts = () => {
    const compute = ["compute", jobs.compute_share.map((share) => share ?? 0)];
    if (select.value === "call") return [compute, ...kinds];
    const { late_partner: late, network } = data.calls;
    return [compute, ["late sender or receiver", late], ["network", network], ["other MPI time", communication.map((share, job) => Math.max(0, (share ?? 0) - late[job] - network[job]))]];
  };
  const rows = () => jobs.name.map((name, job) => ({ name, job, value: jobs.compute_share[job] ?? 0 })).sort((a, b) => a.value - b.value);
  const axis = () => nameAxis(rows().map(({ name }) => name));
  const made = jobFigure({
    id: "calls", title: "MPI breakdown", sentence: data.sentences.calls, controls: [labelled("By", select)], height: () => axis().height + 12, click: chooseRow(rows),
    note: "Shares of the time of a job's ranks. MPI calls that were in progress at the end are not in a call's share.",
    option: () => {
      const { height, ...axes } = axis();
      return {
        grid: { ...LEFT, top: 46 }, ...axes, legend: { top: 0, type: "scroll" }, xAxis: { ...percentAxis, min: 0, name: "share of rank time" },
        tooltip: { formatter: ({ seriesName, name, value }) => `<b>${escaped(name)}</b><br>${escaped(seriesName)}: ${percent(value)}` },
        series: parts().map(([name, shares], at) => ({ type: "bar", stack: "all", name, barMaxWidth: 14, color: at ? PALETTE[(at - 1) % PALETTE.length] : colours().muted, data: rows().map(({ job }) => ({ value: shares[job], itemStyle: { opacity: opacity(job) } })) })),
      };
    },
    csv: () => [["job", ...parts().map(([name]) => name)], ...jobs.name.map((name, job) => [name, ...parts().map(([, shares]) => shares[job])])],
  });
  select.addEventListener("input", made.redraw);
}

function power() {
  const table = data.power;
  if (!table) return;
  const rows = () => table.job.map((job, at) => ({ job, at, value: table.mean_w[at], name: jobs.name[job], low: table.min_w[at], high: table.max_w[at] })).sort((a, b) => table.mean_w[b.at] - table.mean_w[a.at]);
  const axis = () => nameAxis(rows().map(({ name }) => name));
  jobFigure({
    id: "power", title: "Power of sockets", sentence: data.sentences.power, height: () => axis().height, click: chooseRow(rows),
    note: "Bars: mean power of a job's sockets. Whiskers: the sockets with the least and the most. Diamonds: the cap.",
    option: () => {
      const { height, ...parts } = axis();
      const bars = byWorkload(rows(), ({ job }) => ({ opacity: opacity(job) }));
      return {
        grid: LEFT, ...parts, xAxis: { type: "value", min: 0, name: "mean power of a socket, W" },
        tooltip: { formatter: ({ dataIndex }) => tip(rows()[dataIndex]) },
        legend: bars.legend,
        series: [...bars.series, { type: "scatter", symbol: "diamond", symbolSize: 9, z: 6, color: colours().ink, data: rows().map(({ at }, y) => [table.cap_w[at], y]) }],
      };
    },
    csv: () => {
      const columns = Object.keys(table).filter((name) => name !== "job");
      return [["job", ...columns], ...table.job.map((job, at) => [jobs.name[job], ...columns.map((name) => table[name][at])])];
    },
  });
  function tip({ at, name, low, high }) {
    const cap = table.cap_w[at] === null ? "no cap" : `cap ${number(table.cap_w[at])} W`;
    return `<b>${escaped(name)}</b>, ${number(table.sockets[at])} sockets, ${cap}<br>mean ${number(table.mean_w[at])} W (${number(low)} to ${number(high)} W)<br>frequency ${percent(table.frequency_share[at])} on average, at least ${percent(table.min_frequency_share[at])}`;
  }
}

export function startJobs() {
  for (const start of [slowdown, latency, histogram, iterations, calls, power]) start();
}

