/** The simulations of a reproduction and what they took. */

import { data } from "report/data";
import { seconds } from "report/format";
import { tableCard } from "report/table";

export function startCells() {
  const { columns } = data.cells;
  const rows = columns.cell.map((cell, at) => ({ cell, wall: columns.wall_s[at], cpu: columns.cpu_s[at], error: columns.error?.[at] ?? null }));
  const time = (title, name) => ({ title, number: true, value: (row) => row[name], text: (row) => seconds(row[name]) });
  tableCard({
    id: "cells", wide: true, title: "Simulations", sentence: data.sentences.cells, filter: "Only simulations with", rows: () => rows,
    columns: [{ title: "simulation", value: (row) => row.cell }, time("wall time", "wall"), time("processor time", "cpu"), { title: "error", value: (row) => row.error }],
    csv: () => [["simulation", "wall_s", "cpu_s", "error"], ...rows.map((row) => [row.cell, row.wall, row.cpu, row.error])],
  });
}
