/** First-order Sobol' indices of the margins of clauses, by parameter. */

import { roomFor } from "report/axes";
import { figure } from "report/chart";
import { escaped, number } from "report/format";
import { BINS, heatHeight, heatOption } from "report/heat";
import { choose } from "report/robustness/state";
import { scaleOf } from "report/scale";

const HIGH = 24; // px of a row

export function startIndices({ clauses, indices, sentences }) {
  const parameters = [...new Set(indices.map(({ parameter }) => parameter))];
  if (!parameters.length || !clauses.length) return;
  const place = new Map(clauses.map((row, y) => [`${row.claim} ${row.clause}`, y]));
  const certain = (row) => row.beyond_chance === true || row.beyond_chance === "true";
  const cells = indices.filter(({ index }) => typeof index === "number").map((row) => ({ x: parameters.indexOf(row.parameter), y: place.get(`${row.claim} ${row.clause}`), value: row.index, label: certain(row) ? number(row.index) : "", more: row }));
  const names = parameters.map((name) => name.replaceAll("_", " "));
  const says = clauses.map((row) => row.says);
  figure({
    id: "indices", wide: true, responsive: true, title: "What decides clauses", sentence: sentences.indices, height: () => heatHeight(clauses, names, HIGH), width: () => 320 + 44 * names.length,
    click: ({ data: item }) => item?.cell && choose({ clause: item.cell.y }),
    note: "First-order Sobol' index: the share of the variance of a clause's margin that the parameter explains by itself. Numbers: beyond chance. Click a cell for the clause's shares by level.",
    option: (width) => heatOption({
      room: roomFor(says, width * 1.2),
      rows: { names: says, title: "" }, columns: { names, title: "parameter" }, cells, numbers: true, form: number,
      scale: { ...scaleOf(cells.map(({ value }) => value), BINS), low: 0 },
      tip: ({ y, value, more }) => `<b>${escaped(clauses[y].says)}</b><br>${escaped(more.parameter)}: ${number(value)} (95% interval ${number(more.index_low)} to ${number(more.index_high)})<br>${certain(more) ? "beyond chance" : "not beyond chance"}`,
    }),
    csv: () => [Object.keys(indices[0]), ...indices.map((row) => Object.values(row))],
  });
}
