/** The interference matrix: rows are victims, columns aggressors; in order of similarity, filtered, grouped. */

import { element, labelled } from "report/card";
import { figure } from "report/chart";
import { comparison, data } from "report/data";
import { escaped, percent, seconds } from "report/format";
import { BINS, heatHeight, heatOption, side } from "report/heat";
import { jobs } from "report/run/data";
import { choose, chosen, subscribe } from "report/run/state";
import { scaleOf } from "report/scale";

const COUNTERPARTS = 12; // jobs that are shown beside those of a filter
const count = jobs.name.length;

function dense({ victim, aggressor, queueing_s: delay }) {
  const found = new Float64Array(count * count);
  victim.forEach((row, at) => { found[row * count + aggressor[at]] = delay[at]; });
  return found;
}
const own = dense(data.matrix);
const other = comparison && dense(comparison.matrix);
const background = jobs.background.some(Boolean);

const select = element("select", { id: "matrix-order" });
for (const [value, text] of [["similar", "similar jobs together"], ["scenario", "as in the scenario"], ["name", "by name"]]) {
  select.append(element("option", { value, textContent: text }));
}
const filter = element("input", { id: "matrix-filter", type: "search", placeholder: "name or workload" });
const grouping = element("input", { id: "matrix-background", type: "checkbox", checked: background });

function orderOfJobs() {
  if (select.value === "similar") return [...data.matrix.order];
  const numbers = jobs.name.map((_, job) => job);
  return select.value === "name" ? numbers.sort((a, b) => jobs.name[a].localeCompare(jobs.name[b], "en", { numeric: true })) : numbers;
}

/** Rows and columns: each some jobs, with a name. */
function groups() {
  const order = orderOfJobs();
  const apart = background && grouping.checked;
  const found = order.filter((job) => !apart || !jobs.background[job]).map((job) => ({ name: jobs.name[job], members: [job] }));
  const members = order.filter((job) => jobs.background[job]);
  if (apart) found.push({ name: `background (${members.length} jobs)`, members });
  const words = filter.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  if (!words.length) return found;
  const wanted = found.filter(({ name, members: of }) => words.some((word) => name.toLowerCase().includes(word) || of.some((job) => jobs.workload[job].toLowerCase().includes(word))));
  const delay = (group) => wanted.reduce((sum, one) => sum + cell(own, group, one) + cell(own, one, group), 0);
  const others = found.filter((group) => !wanted.includes(group)).map((group) => [group, delay(group)]).filter(([, sum]) => sum > 0);
  const kept = new Set([...wanted, ...others.sort((a, b) => b[1] - a[1]).slice(0, COUNTERPARTS).map(([group]) => group)]);
  return found.filter((group) => kept.has(group));
}

/** Queueing delay, s, that the jobs of a column cause those of a row. */
function cell(of, row, column) {
  let sum = 0;
  for (const victim of row.members) for (const aggressor of column.members) sum += of[victim * count + aggressor];
  return sum;
}

let shown = [];

/** All cells that are shown: row, column, seconds (or the difference), share of the victim's rank time. */
function allCells() {
  shown = groups();
  const found = [];
  shown.forEach((row, y) => {
    const time = row.members.reduce((sum, job) => sum + jobs.rank_time_s[job], 0);
    shown.forEach((column, x) => {
      const delay = cell(own, row, column) - (chosen.difference ? cell(other, row, column) : 0);
      found.push({ x, y, delay, share: time ? delay / time : 0, itself: row === column && row.members.length === 1 });
    });
  });
  return found;
}

function option() {
  const all = allCells();
  const names = shown.map(({ name }) => name);
  return heatOption({
    columns: { names, title: "aggressor" },
    rows: { names, title: "victim" },
    scale: scaleOf(all.filter(({ itself }) => !itself).map(({ share }) => share), BINS, chosen.difference),
    form: (value) => percent(value, chosen.difference),
    cells: all.filter(({ delay }) => delay !== 0).map(({ x, y, delay, share, itself }) => ({ x, y, value: share, grey: itself, more: [delay, itself] })),
    tip: ({ x, y, value, more: [delay, itself] }) => words(shown[y].name, shown[x].name, delay, value, itself),
  });
}

function words(victim, aggressor, delay, share, itself) {
  const whose = itself ? "its own packets" : escaped(aggressor);
  const amount = chosen.difference ? `${delay < 0 ? "−" : "+"}${seconds(Math.abs(delay))}` : seconds(delay);
  return `<b>${escaped(victim)}</b>, delayed by <b>${whose}</b><br>queueing delay ${amount}<br>${percent(share, chosen.difference)} of the victim's rank time`;
}

function rows() {
  const cells = allCells().map(({ x, y, delay, share }) => [shown[y].name, shown[x].name, delay, share]);
  return [["victim", "aggressor", chosen.difference ? "queueing_difference_s" : "queueing_s", "share_of_rank_time"], ...cells];
}

export function startMatrix() {
  if (!data.sentences.matrix) return;
  const controls = [labelled("Order", select), labelled("Only jobs", filter)];
  if (background) controls.push(element("label", { className: "control check" }, grouping, "background jobs together"));
  const made = figure({
    id: "matrix", wide: true, title: "Interference matrix", sentence: data.sentences.matrix, controls, option, csv: rows,
    note: "A cell is the queueing delay of the victim's packets that the aggressor's packets caused, as a share of the victim's rank time; packets queue concurrently, so it can exceed 100%. Grey: a job's own packets. Click a cell to see its links.",
    height: () => { const names = groups().map(({ name }) => name); return heatHeight(names, names, side(names.length)); },
    width: () => Math.max(320, 230 + side(groups().length) * groups().length),
    click: ({ value: [x, y] }) => {
      choose({ victim: shown[y].members, aggressor: shown[x].members, ...(data.by_jobs ? { metric: "jobs" } : {}) });
      document.getElementById("fabric").scrollIntoView({ block: "start" });
    },
  });
  for (const control of [select, filter, grouping]) control.addEventListener("input", made.redraw);
  subscribe(["difference"], made.redraw);
}
