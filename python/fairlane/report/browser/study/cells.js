/** Effects by job and point: a heat map for each kind of run. */

import { roomFor } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, percent } from "report/format";
import { BINS, heatHeight, heatOption, side } from "report/heat";
import { scaleOf } from "report/scale";
import { MEASURES, runOptions, runs } from "report/study/data";

const HIGH = 24; // px of a row

export function startCells() {
  if (!MEASURES.length) return;
  const { rows, columns, row: rowTitle } = data.cells;
  const measure = selection("cells-measure", MEASURES, () => { offer(); made.redraw(); });
  const run = selection("cells-run", [], () => made.redraw());
  function offer() {
    const options = runOptions(data.effects.treatment.filter((row) => row[measure.value] !== null));
    run.replaceChildren(...selection("", options).children);
  }
  offer();
  const cells = (number, name) => {
    const found = [];
    for (let y = 0; y < rows.length; y += 1) {
      for (let x = 0; x < columns.length; x += 1) {
        const value = data.cells[name][(number * rows.length + y) * columns.length + x];
        if (!Number.isNaN(value)) found.push({ x, y, value });
      }
    }
    return found;
  };
  const form = (value) => percent(value, true);
  const made = figure({
    id: "cells", wide: true, responsive: true, title: `Effects by ${rowTitle} and point`, sentence: data.sentences.cells,
    controls: [...(MEASURES.length > 1 ? [labelled("Measure", measure)] : []), ...(runs.length > 1 ? [labelled("Runs", run)] : [])],
    note: "A cell is the change of a job's throughput at one point: a condition with a placement and a seed. Blue: more; orange: less. Empty: not compared.",
    height: () => heatHeight(rows, columns, HIGH), width: () => Math.max(320, 230 + side(columns.length) * columns.length),
    option: (width) => {
      const found = cells(Number(run.value), measure.value);
      return heatOption({
        room: roomFor(rows, width),
        rows: { names: rows, title: rowTitle }, columns: { names: columns, title: "point" }, cells: found, form,
        scale: scaleOf(found.map(({ value }) => value), BINS, true, true),
        tip: ({ x, y, value }) => `<b>${escaped(rows[y])}</b>, ${escaped(runs[Number(run.value)].name)}<br>${escaped(columns[x])}<br>${form(value)}`,
      });
    },
    csv: () => [["treatment", rowTitle, "point", ...MEASURES.map(([name]) => name)], ...runs.flatMap(({ name: of }, number) => rows.flatMap((row, y) => columns.map((column, x) => [of, row, column, ...MEASURES.map(([name]) => {
      const value = data.cells[name][(number * rows.length + y) * columns.length + x];
      return Number.isNaN(value) ? null : value;
    })])))],
  });
}
