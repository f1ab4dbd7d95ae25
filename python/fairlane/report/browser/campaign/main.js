/** The cards of a comparison of a campaign: ratios, bars, cells that are wrong, all cells, registrations. */

import { logarithmicEnds } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { bytes, escaped, number, seconds } from "report/format";
import { tableCard } from "report/table";
import { PALETTE, colours } from "report/theme";

const { bars, cells, factor, registrations, sentences, verdicts } = data;
const SYMBOLS = ["circle", "rect", "triangle", "diamond", "pin", "arrow"];
const name = ({ victim, aggressor }) => `${victim} beside ${aggressor}`;
const ratio = (value) => (value === null ? "–" : value.toFixed(2));
const whole = ({ victim, aggressor, nodes, msg_bytes: size }) => `${victim}, ${aggressor === "none" ? "isolated" : `beside ${aggressor}`}, ${nodes} nodes, ${bytes(size)}`;

function ratios() {
  const parts = Object.keys(bars);
  const of = selection("ratios-of", parts.map((part) => [part, part]), () => made.redraw());
  const shown = () => cells.filter((row) => row.verdict && row.parts.includes(of.value));
  const names = [...new Set(cells.filter(({ verdict }) => verdict).map(name))];
  const ends = () => logarithmicEnds(shown().flatMap((row) => [row.measured_mean_ratio, row.predicted_mean_ratio, 1]));
  const axis = () => ({ type: "log", ...ends(), axisLabel: { formatter: number } });
  const made = figure({
    id: "ratios", wide: true, title: "Predicted against measured slowdowns", sentence: sentences.ratios, height: () => 520, controls: [labelled("Cells", of)],
    note: `Each point is a cell: the mean time of an iteration beside the aggressor over that of the isolated run. Dashed: a factor of ${factor} around the measured ratio.`,
    option: () => ({
      grid: { left: 64, right: 24, top: 40, bottom: 52 }, legend: { top: 0, type: "scroll" },
      xAxis: { ...axis(), name: "measured ratio" }, yAxis: { ...axis(), name: "predicted ratio", nameGap: 44 },
      tooltip: { formatter: ({ data: { row } }) => (row ? `<b>${escaped(whole(row))}</b><br>measured ${ratio(row.measured_mean_ratio)}, predicted ${ratio(row.predicted_mean_ratio)}: ${escaped(row.verdict)}<br>mean ${seconds(row.measured_mean_s)} and ${seconds(row.predicted_mean_s)}` : "") },
      series: [
        ...[1, factor, 1 / factor].map((by) => ({ type: "line", symbol: "none", silent: true, color: colours().muted, lineStyle: { width: 1, type: by === 1 ? "solid" : "dashed" }, data: [[ends().min, ends().min * by], [ends().max, ends().max * by]] })),
        ...names.map((one, at) => ({ type: "scatter", name: one, symbol: SYMBOLS[at % SYMBOLS.length], symbolSize: 11, color: PALETTE[at % PALETTE.length], data: shown().filter((row) => name(row) === one).map((row) => ({ value: [row.measured_mean_ratio, row.predicted_mean_ratio], row })) })),
      ],
    }),
    csv: () => [["victim", "aggressor", "nodes", "msg_bytes", "measured", "predicted", "verdict"], ...shown().map((row) => [row.victim, row.aggressor, row.nodes, row.msg_bytes, row.measured_mean_ratio, row.predicted_mean_ratio, row.verdict])],
  });
}

function table(given, rows, columns) {
  tableCard({ wide: true, ...given, rows: () => rows, columns, csv: () => [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ value }) => value(row)))] });
}

const time = (title, key) => ({ title, number: true, value: (row) => row[key], text: (row) => seconds(row[key]) });
const CELL = [
  { title: "victim", value: (row) => row.victim },
  { title: "aggressor", value: (row) => row.aggressor },
  { title: "nodes", number: true, value: (row) => row.nodes },
  { title: "size", number: true, value: (row) => row.msg_bytes, text: (row) => bytes(row.msg_bytes) },
];
const RATIOS = ["measured", "predicted"].map((of) => ({ title: `ratio of means, ${of}`, number: true, value: (row) => row[`${of}_mean_ratio`], text: (row) => ratio(row[`${of}_mean_ratio`]) }));
const VERDICT = { title: "verdict", value: (row) => row.verdict ?? "" };

export function start() {
  ratios();
  const all = Object.entries(bars).flatMap(([part, of]) => of.map((bar) => ({ part, ...bar })));
  table({ id: "bars", title: "Bars", sentence: sentences.bars }, all, [
    { title: "cells", value: (row) => row.part }, { title: "criterion", value: (row) => row.what },
    { title: "found", value: (row) => row.text }, { title: "reached", value: (row) => ({ true: "yes", false: "no" })[row.holds] ?? "–" },
  ]);
  table({ id: "wrong", title: "Cells that were predicted wrong", sentence: sentences.wrong, note: verdicts }, cells.filter((row) => row.verdict && row.verdict !== "right"), [...CELL, ...RATIOS, VERDICT]);
  const times = ["median", "mean", "p99"].flatMap((of) => ["measured", "predicted"].map((one) => time(`${of}, ${one}`, `${one}_${of}_s`)));
  table({ id: "cells", title: "All cells", sentence: sentences.cells, filter: "Search" }, cells, [...CELL, ...times, ...RATIOS, VERDICT]);
  table({ id: "registrations", title: "Registered predictions", sentence: sentences.registrations }, registrations, ["number", "label", "registered", "fairlane", "count", "note", "bars"].map((key) => ({ title: key === "count" ? "cells" : key, number: ["number", "count"].includes(key), value: (row) => row[key] })));
}
