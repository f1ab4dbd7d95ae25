/** The share of points at which a clause holds, by levels of parameters. */

import { LEFT, nameAxis, percentAxis, roomFor } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { escaped, percent } from "report/format";
import { choose, chosen, subscribe } from "report/robustness/state";
import { PALETTE } from "report/theme";
import { whiskers } from "report/whiskers";

export function startLevels({ clauses, levels }) {
  if (!levels.length) return;
  const clause = selection("levels-clause", clauses.map(({ says }, at) => [String(at), says]), () => choose({ clause: Number(clause.value) }));
  const shown = () => clauses[chosen.clause];
  const rows = () => levels.filter((row) => row.claim === shown().claim && row.clause === shown().clause);
  const names = () => rows().map(({ parameter, level }) => `${parameter.replaceAll("_", " ")}: ${level}`);
  const decided = (row) => shown().decided_by.split(", ").includes(row.parameter);
  const sentence = () => {
    const { says, share, decided_by: by } = shown();
    return `${says}: holds at ${percent(share)} of the points; ${by ? `decided by ${by}` : "no parameter decides it beyond chance"}.`;
  };
  const made = figure({
    id: "levels", responsive: true, title: "A clause by levels of parameters", sentence: sentence(), controls: [labelled("Clause", clause)], height: () => nameAxis(names()).height,
    note: "Share of the points with a level, or in a third of a range, at which the clause holds. Blue: parameters that decide it beyond chance. Whiskers: 95% interval.",
    option: (width) => {
      const all = rows();
      const room = roomFor(names(), width * 1.4);
      const { height, ...parts } = nameAxis(names(), room);
      return {
        grid: { ...LEFT, left: room + 12 }, ...parts, xAxis: { ...percentAxis, min: 0, max: 1, name: "share of points" },
        tooltip: { formatter: ({ dataIndex }) => `<b>${escaped(names()[dataIndex])}</b><br>holds at ${all[dataIndex].held} of ${all[dataIndex].points} points: ${percent(all[dataIndex].share)}` },
        series: [{ type: "bar", barMaxWidth: 14, data: all.map((row) => ({ value: row.share, itemStyle: { color: decided(row) ? PALETTE[0] : PALETTE[4] } })) }, whiskers(all.map(({ share_low: low, share_high: high }) => ({ low, high })))],
      };
    },
    csv: () => [Object.keys(levels[0]), ...levels.map((row) => Object.values(row))],
  });
  clause.value = String(chosen.clause);
  subscribe(["clause"], () => {
    clause.value = String(chosen.clause);
    made.sentence.textContent = sentence();
    made.redraw();
  });
}
