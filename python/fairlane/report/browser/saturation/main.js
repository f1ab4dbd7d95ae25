/** The cards of a sweep of loads: throughput, latency, the points as a table. */

import { isWide, logarithmicEnds } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { WIDE } from "report/constants";
import { comparison, data } from "report/data";
import { number, percent, seconds, timeTick } from "report/format";
import { tableCard } from "report/table";
import { PALETTE, colours } from "report/theme";
import { uprightWhiskers } from "report/whiskers";

const { points, limit } = data;
const most = Math.max(...points.map(({ load }) => load));
const load = { type: "value", name: "offered load, share of the injection bandwidth", min: 0, max: Math.ceil(most * 10.5) / 10, axisLabel: { formatter: number } };
const words = { yes: "saturated", no: "accepted in full", undecided: "undecided" };

/** The range of saturated loads, shaded: part of a series. */
const saturated = () => (data.from === null ? {} : { markArea: { silent: true, itemStyle: { color: colours().faint, opacity: 0.35 }, label: { color: colours().muted, position: "insideTopRight" }, data: [[{ name: "saturated", xAxis: data.from }, { xAxis: load.max }]] } });
const others = () => comparison?.points ?? [];

function throughput() {
  const line = (name, rows, colour, type) => ({ type: "line", name, color: colour, symbolSize: 7, lineStyle: { width: 2, type }, data: rows.map((row) => ({ value: [row.load, row.accepted], row })) });
  figure({
    id: "throughput", title: "Accepted throughput", sentence: data.sentences.throughput, height: () => 380,
    note: `Shares of the injection bandwidth. Grey line: all that is offered. Whiskers: 95% interval over seeds. A load is saturated if less than ${percent(limit)} of it is accepted.`,
    option: () => ({
      grid: { left: 70, right: 24, top: 40, bottom: 50 }, legend: { top: 0, type: "scroll", data: ["offered", "accepted", ...(comparison ? [`accepted, ${comparison.meta.name}`] : [])] }, xAxis: load,
      yAxis: { type: "value", name: "accepted throughput", nameGap: 48, min: 0, axisLabel: { formatter: (value) => percent(value).replace(".0%", "%") } },
      tooltip: { formatter: ({ data: { row }, seriesName }) => (row ? `<b>load ${number(row.load)}</b>, ${seriesName}<br>accepted ${percent(row.accepted)} (${words[row.saturated]})<br>offered ${percent(row.offered)}<br>${row.seeds} seeds` : "") },
      series: [
        { type: "line", name: "offered", symbol: "none", silent: true, color: colours().muted, lineStyle: { width: 1, type: "dotted" }, data: [[0, 0], [load.max, load.max]], ...saturated() },
        line("accepted", points, PALETTE[0]),
        uprightWhiskers(points.map((row) => [row.load, row.accepted_low, row.accepted_high])),
        ...(comparison ? [line(`accepted, ${comparison.meta.name}`, others(), PALETTE[1], "dashed")] : []),
      ],
    }),
    csv: () => {
      const names = ["load", "seeds", "offered", "accepted", "accepted_low", "accepted_high", "ratio", "saturated"];
      return [["sweep", ...names], ...[[data.meta.name, points], [comparison?.meta.name, others()]].flatMap(([sweep, rows]) => rows.map((row) => [sweep, ...names.map((name) => row[name])]))];
    },
  });
}

const LATENCIES = { message_mean: "messages, mean", message_p50: "messages, median", message_p99: "messages, 99%", message_p999: "messages, 99.9%", packet_mean: "packets, mean", packet_p99: "packets, 99%" };

function latency() {
  if (!data.sentences.latency) return;
  const known = Object.keys(LATENCIES).filter((name) => points.some((row) => row[name] !== null && row[name] !== undefined));
  const of = selection("latency-of", [["message", "messages"], ["packet", "packets"]].filter(([name]) => known.some((one) => one.startsWith(name))), () => made.redraw());
  const shown = () => known.filter((name) => name.startsWith(of.value));
  const steady = (row) => row.saturated === "no";
  const line = (name, rows, at, more, title) => ({
    type: "line", name: title, color: PALETTE[[0, 5, 1, 2][at % 4]], symbol: ["circle", "rect", "triangle", "diamond"][at % 4], symbolSize: 8,
    data: rows.filter((row) => row[name] !== null).map((row) => ({ value: [row.load, row[name]], row, name, itemStyle: steady(row) ? {} : { color: colours().card, borderWidth: 2, borderColor: PALETTE[[0, 5, 1, 2][at % 4]] } })), ...more,
  });
  const values = () => [...points, ...others()].flatMap((row) => shown().map((name) => row[name])).filter((value) => value !== null && value !== undefined);
  const made = figure({
    id: "latency", title: "Latency", sentence: data.sentences.latency, height: () => 380, controls: [labelled("Of", of)],
    note: `Hollow: loads that are saturated or undecided, whose latency depends on the simulated time. Whiskers: 95% interval over seeds. Logarithmic if latencies differ by more than a factor of ${WIDE}.`,
    option: () => ({
      grid: { left: 76, right: 24, top: 40, bottom: 50 }, xAxis: load,
      legend: { top: 0, type: "scroll", data: shown().flatMap((name) => [LATENCIES[name], ...(comparison ? [`${LATENCIES[name]}, ${comparison.meta.name}`] : [])]) },
      yAxis: { ...(isWide(values()) ? { type: "log", ...logarithmicEnds(values()) } : { type: "value", min: 0 }), name: "latency", nameGap: 56, axisLabel: { formatter: timeTick } },
      tooltip: { formatter: ({ data: { row, name } }) => (row ? `<b>load ${number(row.load)}</b> (${words[row.saturated]})<br>${LATENCIES[name]}: ${seconds(row[name])}` : "") },
      series: [
        ...shown().map((name, at) => line(name, points, at, at ? {} : saturated(), LATENCIES[name])),
        ...shown().filter((name) => `${name}_low` in points[0]).map((name) => uprightWhiskers(points.map((row) => [row.load, row[`${name}_low`], row[`${name}_high`]]))),
        ...(comparison ? shown().map((name, at) => line(name, others(), at, { lineStyle: { type: "dashed" } }, `${LATENCIES[name]}, ${comparison.meta.name}`)) : []),
      ],
    }),
    csv: () => [["sweep", "load", ...known.map((name) => `${name}_s`)], ...[[data.meta.name, points], [comparison?.meta.name, others()]].flatMap(([sweep, rows]) => rows.map((row) => [sweep, row.load, ...known.map((name) => row[name])]))],
  });
}

function table() {
  const shares = ["offered", "accepted"];
  const times = Object.keys(LATENCIES).filter((name) => name in points[0]);
  const titles = { offered: "offered", accepted: "accepted" };
  tableCard({
    id: "points", wide: true, title: "Loads", rows: () => points,
    sentence: comparison ? comparison.sentence : `${points.filter((row) => row.saturated === "yes").length} of ${points.length} loads are saturated, ${points.filter((row) => row.saturated === "undecided").length} undecided.`,
    columns: [
      { title: "load", number: true, value: (row) => row.load, text: (row) => number(row.load) },
      ...shares.map((name) => ({ title: titles[name], number: true, value: (row) => row[name], text: (row) => percent(row[name]) })),
      { title: "links per packet", number: true, value: (row) => row.links, text: (row) => number(row.links) },
      { title: "verdict", value: (row) => words[row.saturated] },
      ...times.map((name) => ({ title: LATENCIES[name], number: true, value: (row) => row[name], text: (row) => seconds(row[name]) })),
    ],
    csv: () => [["load", "seed", "offered", "accepted"], ...data.runs.map((row) => [row.load, row.seed, row.offered, row.accepted])],
  });
}

export function start() {
  throughput();
  latency();
  table();
}
