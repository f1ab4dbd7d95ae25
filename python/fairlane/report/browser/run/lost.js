/** Lost time by victim and aggressor, from leave-one-out runs: most lost time first. */

import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, percent, seconds } from "report/format";
import { BINS, heatHeight, heatOption, side } from "report/heat";
import { jobNumber } from "report/run/data";
import { choose } from "report/run/state";
import { scaleOf } from "report/scale";

const interval = ({ lost_s_low: low, lost_s_high: high }) => (low === null ? "" : ` (95% interval ${seconds(low)} to ${seconds(high)})`);

const words = (cell) =>
  `<b>${escaped(cell.victim)}</b> without <b>${escaped(cell.aggressor)}</b><br>loses ${seconds(cell.lost_s)} per iteration${interval(cell)}, ${percent(cell.share, true)} of its time${cell.certain ? "" : "; within noise"}<br>queueing delay behind it ${seconds(cell.queueing_s)}`;

export function startLost() {
  if (!data.lost) return;
  const { victims, aggressors, cells } = data.lost;
  figure({
    id: "lost", wide: true, title: "Lost time by victim and aggressor", sentence: data.sentences.lost,
    note: "How much longer an iteration of the victim takes than without the aggressor, as a share of the victim's time. Numbers in brackets are within noise. Losses to several aggressors need not add up to the whole loss. Click a cell to see its links.",
    height: () => heatHeight(victims, aggressors, side(aggressors.length)),
    width: () => Math.max(320, 230 + side(aggressors.length) * aggressors.length),
    option: () => heatOption({
      columns: { names: aggressors, title: "aggressor" },
      rows: { names: victims, title: "victim" },
      scale: scaleOf(cells.map(({ share }) => Math.max(0, share)), BINS),
      form: percent,
      cells: cells.map((cell) => ({ x: cell.column, y: cell.row, value: Math.max(0, cell.share), label: cell.certain ? percent(cell.share) : `(${percent(cell.share)})`, more: cell })),
      tip: ({ more }) => words(more),
    }),
    csv: () => [["victim", "aggressor", "lost_s", "lost_low_s", "lost_high_s", "lost_share", "queueing_s"], ...cells.map((cell) => [cell.victim, cell.aggressor, cell.lost_s, cell.lost_s_low, cell.lost_s_high, cell.share, cell.queueing_s])],
    click: ({ data: { cell: { more } } }) => {
      const aggressor = jobNumber.get(more.aggressor);
      choose({ victim: [jobNumber.get(more.victim)], aggressor: aggressor === undefined ? null : [aggressor], ...(data.by_jobs ? { metric: "jobs" } : {}) });
      document.getElementById("fabric").scrollIntoView({ block: "start" });
    },
  });
}
