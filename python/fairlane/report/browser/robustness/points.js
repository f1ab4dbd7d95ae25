/** The margin of a clause at every point, by a parameter. */

import { isWide } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { escaped, number } from "report/format";
import { choose, chosen, subscribe } from "report/robustness/state";
import { PALETTE, colours } from "report/theme";

export function startPoints({ clauses, points, parameters }) {
  const { columns, numeric } = points;
  const names = parameters.map(({ name }) => name).filter((name) => name in columns);
  if (!names.length || !clauses.length) return;
  const title = (name) => parameters.find((one) => one.name === name)?.title || name;
  const parameter = selection("points-parameter", names.map((name) => [name, title(name)]), () => made.redraw());
  const clause = selection("points-clause", clauses.map(({ says }, at) => [String(at), says]), () => choose({ clause: Number(clause.value) }));
  const rows = () => columns.point.map((_, at) => at).filter((at) => columns.claim[at] === clauses[chosen.clause].claim && columns.clause[at] === clauses[chosen.clause].clause && typeof columns.margin[at] === "number" && columns.point[at] > 0);
  const isNumber = () => numeric.includes(parameter.value);
  const wide = () => isNumber() && isWide(columns[parameter.value]);
  const holds = (at) => columns.holds[at] === true || columns.holds[at] === "true";
  const sentence = () => { const all = rows(); return `${clauses[chosen.clause].says}: ${all.filter(holds).length} of ${all.length} values are in their band.`; };
  const made = figure({
    id: "points", title: "Margins by parameter", sentence: sentence(), controls: [labelled("Clause", clause), labelled("Parameter", parameter)], height: () => 360,
    note: "Distance of a value from the nearest edge of its band, in units of the value; below zero it is outside. A dot is a number of the clause at one point.",
    option: () => ({
      grid: { left: 76, right: 24, top: 40, bottom: 60 }, legend: { top: 0, data: ["in the band", "outside"] },
      xAxis: { ...(isNumber() ? { type: wide() ? "log" : "value", scale: true } : { type: "category", data: [...new Set(columns[parameter.value].map(String))] }), name: title(parameter.value), axisLabel: { hideOverlap: true, width: 120, overflow: "truncate", ...(isNumber() && { formatter: number }) } },
      yAxis: { type: "value", name: "margin", nameGap: 54, axisLabel: { formatter: number } },
      tooltip: { formatter: ({ data: { at } }) => `point ${columns.point[at]}<br>${escaped(columns.measured[at])}<br>margin ${number(columns.margin[at])}` },
      series: [["in the band", true, PALETTE[0], "circle"], ["outside", false, PALETTE[1], "triangle"]].map(([name, wanted, color, symbol]) => ({
        type: "scatter", name, color, symbol, symbolSize: 7, itemStyle: { opacity: 0.8 },
        data: rows().filter((at) => holds(at) === wanted).map((at) => ({ value: [isNumber() ? columns[parameter.value][at] : String(columns[parameter.value][at]), columns.margin[at]], at })),
        ...(wanted && { markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours().ink, type: "dashed" }, data: [{ yAxis: 0 }] } }),
      })),
    }),
    csv: () => [Object.keys(columns), ...columns.point.map((_, at) => Object.values(columns).map((column) => column[at]))],
  });
  clause.value = String(chosen.clause);
  subscribe(["clause"], () => {
    clause.value = String(chosen.clause);
    made.sentence.textContent = sentence();
    made.redraw();
  });
}
