/** The cards of a survey of failures: slowdowns by what fails, and tables of what fails and of jobs. */

import { LEFT, isWide, logarithmicEnds, nameAxis, roomFor } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { WIDE } from "report/constants";
import { comparison, data } from "report/data";
import { escaped, number, percent, seconds } from "report/format";
import { tableCard } from "report/table";
import { PALETTE, colours } from "report/theme";
import { whiskers } from "report/whiskers";

const { jobs, parts, what, whats } = data;
const names = [...new Set(jobs.map(({ name }) => name))];
const key = (part, name) => JSON.stringify([part, name]);
/** Rows of `of` by part and job; without a job, the greatest slowdown of any. */
const byKey = (of) => new Map([...of.parts.map((row) => [key(row.part, ""), row]), ...of.jobs.map((row) => [key(row.part, row.name), row])]);
const [own, others] = [byKey(data), comparison && byKey(comparison)];
const fixed = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
const within = ({ slowdown, slowdown_low: low, slowdown_high: high }) => (low === null || slowdown === null ? fixed(slowdown) : `${fixed(slowdown)} (${fixed(low)} to ${fixed(high)})`);

/** What happened besides a slowdown, in words: of a job, or of all jobs. */
function harm(row) {
  const found = row.name === undefined
    ? [[row.jobs_failed, "jobs failed"], [row.jobs_stalled, "jobs stalled"], [row.hosts_cut_off, "hosts cut off"]].filter(([count]) => count).map(([count, words]) => `${number(count)} ${words}`)
    : [[row.failed, "failed"], [row.stalled, "stalled"]].filter(([share]) => share).map(([share, words]) => `${words} on ${percent(share)} of the seeds`);
  return found.join(", ");
}

function slowdowns() {
  const of = selection("slowdowns-of", [["", "greatest of any job"], ...names.map((name) => [name, name])], () => made.redraw());
  const rows = () => parts.map(({ part }) => own.get(key(part, of.value))).filter(Boolean);
  const labels = () => rows().map((row) => (row.slowdown === null && harm(row) ? `${row.part}: ${harm(row)}` : row.part));
  const dots = (all, more) => ({ type: "scatter", symbolSize: 11, z: 6, data: all.map((row, y) => ({ row, y })).filter(({ row }) => row && row.slowdown !== null).map(({ row, y }) => ({ value: [row.slowdown, y], row })), ...more });
  const made = figure({
    id: "slowdowns", wide: true, responsive: true, title: "Slowdown by failure", sentence: data.sentences.slowdowns, height: () => nameAxis(labels()).height + 24,
    controls: [labelled("Job", of)],
    note: `Time per iteration (or mean latency of messages) after the failure, over that without a failure; 1: no effect. Whiskers: 95% interval over seeds. Red: a job failed or stalled, or hosts were cut off.${comparison ? ` Hollow: ${comparison.meta.name}.` : ""} Logarithmic if slowdowns differ by more than a factor of ${WIDE}.`,
    option: (width) => {
      const all = rows();
      const room = roomFor(labels(), width);
      const { height, ...shown } = nameAxis(labels(), room);
      const { ink, card } = colours();
      const compared = all.map(({ part }) => others?.get(key(part, of.value)));
      const values = [...all, ...compared].map((row) => row?.slowdown ?? null);
      const first = dots(all.map((row) => row), { name: "slowdown", color: PALETTE[0] });
      for (const item of first.data) if (harm(item.row)) Object.assign(item, { symbol: "diamond", symbolSize: 14, itemStyle: { color: PALETTE[2] } });
      return {
        grid: { ...LEFT, top: 24, left: room + 12 }, ...shown,
        xAxis: { ...(isWide(values) ? { type: "log", ...logarithmicEnds(values.filter((value) => value !== null)) } : { type: "value", scale: true }), name: "slowdown", axisLabel: { formatter: number } },
        tooltip: { formatter: ({ data: { row } }) => tip(row) },
        series: [
          { ...first, markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: ink, type: "dashed", width: 1.2 }, data: [{ xAxis: 1 }] } },
          ...(comparison ? [dots(compared, { name: comparison.meta.name, z: 5, itemStyle: { color: card, borderColor: PALETTE[1], borderWidth: 2 } })] : []),
          whiskers(all.map(({ slowdown_low: low, slowdown_high: high }) => ({ low, high }))),
        ],
      };
    },
    csv: () => [["survey", "part", "job", "slowdown", "slowdown_low", "slowdown_high"], ...[[data.meta.name, data], ...(comparison ? [[comparison.meta.name, comparison]] : [])].flatMap(([survey, { jobs: all }]) => all.map((row) => [survey, row.part, row.name, row.slowdown, row.slowdown_low, row.slowdown_high]))],
  });
  const tip = (row) => `<b>${escaped(row.part)}</b>, ${escaped(row.name ?? row.worst_job ?? "no job")}<br>slowdown ${within(row)}<br>${row.replicates} seeds${harm(row) ? `<br>${escaped(harm(row))}` : ""}`;
}

function partsTable() {
  const count = (title, name) => ({ title, number: true, value: (row) => row[name], text: (row) => (row[name] === null ? "–" : number(row[name])) });
  const columns = [
    { title: "rank", number: true, value: (row) => row.rank },
    { title: what, value: (row) => row.part },
    { title: "job that suffers most", value: (row) => row.worst_job },
    { title: "greatest slowdown", number: true, value: (row) => row.slowdown, text: within },
    ...(comparison ? [{ title: `in ${comparison.meta.name}`, number: true, value: (row) => others.get(key(row.part, ""))?.slowdown ?? null, text: (row) => within(others.get(key(row.part, "")) ?? { slowdown: null }) }] : []),
    count("jobs failed", "jobs_failed"), count("jobs stalled", "jobs_stalled"), count("hosts cut off", "hosts_cut_off"), count("packets lost", "packets_lost"),
    { title: "routes afterwards", value: (row) => row.routing },
  ];
  const exported = Object.keys(parts[0] ?? {});
  tableCard({
    id: "parts", wide: true, title: `All ${whats}, most critical first`, rows: () => parts, columns, filter: "Search",
    sentence: comparison ? `${data.sentences.parts} ${comparison.sentence}` : data.sentences.parts,
    note: "Means over seeds. Order: simulations that could not continue, jobs failed, hosts cut off, jobs stalled, greatest slowdown.",
    csv: () => [exported, ...parts.map((row) => exported.map((name) => row[name]))],
  });
}

function jobsTable() {
  const exported = Object.keys(jobs[0] ?? {});
  tableCard({
    id: "jobs", wide: true, title: "Jobs", rows: () => jobs, sentence: data.sentences.jobs, filter: "Search",
    columns: [
      { title: what, value: (row) => row.part },
      { title: "job", value: (row) => row.name },
      { title: "slowdown", number: true, value: (row) => row.slowdown, text: within },
      { title: "without a failure", number: true, value: (row) => row.unbroken_s, text: (row) => seconds(row.unbroken_s) },
      { title: "failed", number: true, value: (row) => row.failed, text: (row) => percent(row.failed) },
      { title: "stalled", number: true, value: (row) => row.stalled, text: (row) => percent(row.stalled) },
    ],
    note: "Without a failure: time per iteration, or mean latency of messages. Failed and stalled: share of the seeds.",
    csv: () => [exported, ...jobs.map((row) => exported.map((name) => row[name]))],
  });
}

export function start() {
  slowdowns();
  partsTable();
  jobsTable();
}
