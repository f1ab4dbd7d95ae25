/** The share of the plausible space at which each clause holds. */

import { LEFT, nameAxis, percentAxis, roomFor } from "report/axes";
import { figure } from "report/chart";
import { comparison } from "report/data";
import { escaped, percent } from "report/format";
import { choose } from "report/robustness/state";
import { PALETTE, colours } from "report/theme";
import { whiskers } from "report/whiskers";

const JUDGED = 3; // verdicts with a colour of their own, the first
const usual = ({ default_held: held, default_points: points }) => (points ? held / points : null);

export function startShares({ clauses, sentences, verdicts }, other) {
  const colourOf = (verdict) => {
    const at = verdicts.indexOf(verdict);
    return at < JUDGED ? PALETTE[at] : colours().muted;
  };
  const names = clauses.map(({ says }) => says);
  const others = new Map((other?.clauses ?? []).map((row) => [`${row.claim} ${row.clause}`, row]));
  const compared = clauses.map((row) => others.get(`${row.claim} ${row.clause}`));
  figure({
    id: "shares", wide: true, responsive: true, title: "Where clauses hold", sentence: sentences.shares, height: () => nameAxis(names).height + 24,
    click: ({ dataIndex, seriesType }) => seriesType === "bar" && choose({ clause: dataIndex }),
    note: `Share of the points of the plausible space at which a clause holds, with its 95% interval. Robust: at 90% or more; rarely holds: at 10% or fewer; depends: between. Triangles: share at the defaults, over seeds.${other ? ` Diamonds: ${comparison.meta.name}.` : ""} Click a bar for what the clause depends on.`,
    option: (width) => {
      const room = roomFor(names, width * 1.4);
      const { height, ...parts } = nameAxis(names, room);
      const { ink, card } = colours();
      const used = verdicts.filter((verdict) => clauses.some((row) => row.verdict === verdict));
      return {
        grid: { ...LEFT, left: room + 12, top: 46 }, ...parts, xAxis: { ...percentAxis, min: 0, max: 1, name: "share of points" }, legend: { top: 0, type: "scroll", data: used },
        tooltip: { formatter: ({ dataIndex, data: item }) => tip(clauses[item.row ?? dataIndex]) },
        series: [
          ...used.map((verdict) => ({ type: "bar", stack: "one", name: verdict, color: colourOf(verdict), barMaxWidth: 14, data: clauses.map((row) => (row.verdict === verdict ? row.share : null)) })),
          { type: "scatter", symbol: "triangle", symbolRotate: 180, symbolSize: 10, symbolOffset: [0, -9], z: 7, color: ink, data: clauses.map((row, y) => ({ value: [usual(row), y], row: y })).filter(({ value }) => value[0] !== null) },
          ...(other ? [{ type: "scatter", symbol: "diamond", symbolSize: 11, z: 8, itemStyle: { color: card, borderColor: ink, borderWidth: 1.5 }, data: compared.map((row, y) => (row ? { value: [row.share, y], row: y } : null)).filter(Boolean) }] : []),
          whiskers(clauses.map(({ share_low: low, share_high: high }) => ({ low, high }))),
        ],
      };
    },
    csv: () => [Object.keys(clauses[0] ?? {}), ...clauses.map((row) => Object.values(row))],
  });
  const tip = (row) => `<b>${escaped(row.says)}</b><br>holds at ${row.held} of ${row.points} points: ${percent(row.share)} (95% interval ${percent(row.share_low)} to ${percent(row.share_high)})<br>${escaped(row.verdict)}${row.near_certain ? ", near certain" : ""}<br>at the defaults ${row.default_held} of ${row.default_points}${row.decided_by ? `<br>depends on ${escaped(row.decided_by)}` : ""}`;
}
