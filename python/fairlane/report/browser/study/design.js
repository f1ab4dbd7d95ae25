/** What explains the time per iteration in a designed study: shares of the variance by factor and pair of factors. */

import { LEFT, nameAxis, roomFor, percentAxis } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, number, percent } from "report/format";
import { PALETTE, colours } from "report/theme";

const CERTAIN = 0.05; // p below which an effect is beyond chance

export function startDesign() {
  const terms = data.design;
  if (!terms) return;
  const job = selection("design-job", [...new Set(terms.map(({ name }) => name))].map((name) => [name, name]), () => made.redraw());
  const rows = () => terms.filter(({ name, share }) => name === job.value && share !== null).sort((a, b) => b.share - a.share);
  const names = () => rows().map(({ term }) => term);
  const colour = ({ term, p }) => (term === "residual" ? colours().faint : p !== null && p < CERTAIN ? PALETTE[0] : colours().muted);
  const made = figure({
    responsive: true, wide: true, id: "design", title: "What explains the time per iteration", sentence: data.sentences.design, controls: [labelled("Job", job)], height: () => nameAxis(names()).height,
    note: "Share of the variance of the logarithm of the time per iteration, by factor and by pair of factors. Blue: p below 0.05 by the F test; grey: not, or not known. Residual: what is left to chance.",
    option: (width) => {
      const room = roomFor(names(), width);
      const { height, ...parts } = nameAxis(names(), room);
      return {
        grid: { ...LEFT, left: room + 12 }, ...parts, xAxis: { ...percentAxis, min: 0, name: "share of the variance" },
        tooltip: { formatter: ({ dataIndex }) => tip(rows()[dataIndex]) },
        series: [{ type: "bar", barMaxWidth: 14, data: rows().map((row) => ({ value: row.share, itemStyle: { color: colour(row) } })) }],
      };
    },
    csv: () => [["job", "term", "degrees", "factor", "share", "p"], ...terms.map((row) => [row.name, row.term, row.degrees, row.factor, row.share, row.p])],
  });
  const tip = ({ term, factor, share, p }) => `<b>${escaped(term)}</b><br>${percent(share)} of the variance${factor === null ? "" : `<br>time at the slowest level over that at the fastest: ${number(factor)}`}${p === null ? "" : `<br>p ${number(p)}`}`;
}
