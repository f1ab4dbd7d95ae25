/** Every number of every clause over replicates against its band, each row on a scale of its own. */

import { LEFT, nameAxis, roomFor } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { comparison, data } from "report/data";
import { escaped, number } from "report/format";
import { heldOf, spreadOf } from "report/reproduction/claims";
import { choose, chosen, subscribe } from "report/reproduction/state";
import { PALETTE, colours } from "report/theme";

const [LOWER, UPPER] = [0, 1]; // places of the edges of a band
const [FIRST, LAST] = [-1.2, 2.2]; // ends of the scale
const SPREAD = 0.44; // of a row over which its replicates are spread
const RADIUS = 4.5;

/** The size of the only edge of a band; where it is zero, the largest distance from it. */
function unitOf({ lows, highs, values }) {
  const edges = [lows[0], highs[0]].filter((edge) => edge !== null && edge !== 0).map(Math.abs);
  if (edges.length) return Math.max(...edges);
  const distances = values.flatMap((value, at) => [lows[at], highs[at]].filter((edge) => edge !== null && value !== null).map((edge) => Math.abs(value - edge)));
  return Math.max(0, ...distances) || 1;
}

/** Where a value stands on the scale of its row. */
function placeOf(value, low, high, unit) {
  if (low !== null && high !== null) return high > low ? LOWER + (value - low) / (high - low) : (LOWER + UPPER) / 2 + (value - low) / unit;
  return low !== null ? LOWER + (value - low) / unit : UPPER + (value - (high ?? 0)) / unit;
}

/** The numbers of claims, each claim after a row with its name. */
function rowsOf(claims, wanted) {
  return claims.filter(({ id, clauses }) => clauses.length && (!wanted || id === wanted)).flatMap((claim) => [
    { head: true, name: `${claim.id}: ${claim.verdict}`, claim },
    ...claim.clauses.flatMap((clause, at) => clause.numbers.map((one, place) => ({ name: one.label, claim, clause, one, key: `${claim.id} ${at} ${place}` }))),
  ]);
}

export function startNumbers() {
  if (!data.claims.some(({ clauses }) => clauses.length)) return;
  const measuredClaims = data.claims.filter(({ clauses }) => clauses.length);
  const claim = selection("numbers-claim", [["", "all claims"], ...measuredClaims.map(({ id }) => [id, id])], () => choose({ claim: claim.value }));
  const others = new Map(rowsOf(comparison?.claims ?? []).filter(({ head }) => !head).map((row) => [row.key, row.one]));
  const rows = () => rowsOf(data.claims, chosen.claim);
  const dotsOf = (row, y, one, other) => {
    const unit = unitOf(one);
    return one.values.map((value, at) => ({ value, at })).filter(({ value }) => value !== null).map(({ value, at }, order, every) => ({
      value: [y, Math.min(Math.max(placeOf(value, one.lows[at], one.highs[at], unit), FIRST), LAST), every.length > 1 ? (order / (every.length - 1) - 0.5) * SPREAD : 0],
      row, at, one, other, place: placeOf(value, one.lows[at], one.highs[at], unit),
    }));
  };
  const made = figure({
    id: "numbers", wide: true, responsive: true, title: "Numbers against their bands", sentence: data.sentences.numbers, controls: [labelled("Claim", claim)],
    note: `A dot is a replicate; blue: in the band, orange: outside. Shaded: the band. Each row has its own scale: edges of bands are at fixed places; where a band has one edge, twice its value is one unit away. Triangles: beyond the scale.${comparison ? ` Hollow: ${comparison.meta.name}.` : ""}`,
    height: () => nameAxis(rows().map(({ name }) => name)).height + 20,
    option: (width) => {
      const all = rows();
      const { ink, muted, faint, card } = colours();
      const names = all.map(({ name }) => name);
      const room = roomFor(names, width * 1.4);
      const { height, ...parts } = nameAxis(names, room);
      parts.yAxis.axisLabel = { ...parts.yAxis.axisLabel, formatter: (name, at) => (all[at].head ? `{head|${name}}` : name), rich: { head: { fontWeight: "bold", color: ink } } };
      const bands = all.flatMap((row, y) => (row.one ? [{ value: [y, row.one.lows[0] === null ? FIRST - 0.1 : LOWER, row.one.highs[0] === null ? LAST + 0.1 : UPPER], one: row.one }] : []));
      const dots = all.flatMap((row, y) => (row.one ? [...dotsOf(row, y, row.one, false), ...(others.has(row.key) ? dotsOf(row, y, others.get(row.key), true) : [])] : []));
      return {
        grid: { ...LEFT, left: room + 12, top: 30 }, ...parts,
        xAxis: { type: "value", min: FIRST - 0.1, max: LAST + 0.1, interval: 100, axisLabel: { show: false }, splitLine: { show: false } },
        tooltip: { formatter: ({ data: item }) => (item.row ? tip(item) : "") },
        series: [
          { type: "custom", silent: true, z: 1, encode: { x: [1, 2], y: 0 }, data: bands,
            markLine: { silent: true, symbol: "none", lineStyle: { color: muted, type: "dotted" }, label: { color: muted, position: "start", formatter: ({ value }) => (value === LOWER ? "lower edge" : "upper edge") }, data: [{ xAxis: LOWER }, { xAxis: UPPER }] },
            renderItem: (_, api) => {
              const [left, y] = api.coord([api.value(1), api.value(0)]);
              const [right] = api.coord([api.value(2), api.value(0)]);
              const high = api.size([0, 1])[1] * 0.74;
              return { type: "rect", shape: { x: left, y: y - high / 2, width: right - left, height: high }, style: { fill: faint, opacity: 0.45 } };
            } },
          { type: "custom", name: "replicate", z: 4, encode: { x: 1, y: 0 }, data: dots,
            renderItem: (parameters, api) => {
              const { one, at, other, place } = dots[parameters.dataIndex];
              const [x, middle] = api.coord([api.value(1), api.value(0)]);
              const y = middle + api.value(2) * api.size([0, 1])[1];
              const colour = one.holds[at] ? PALETTE[0] : PALETTE[1];
              const style = other ? { fill: card, stroke: colour, lineWidth: 1.8 } : { fill: colour, opacity: 0.85 };
              const way = place < FIRST ? -1 : place > LAST ? 1 : 0;
              if (way) return { type: "polygon", shape: { points: [[x + way * 6, y], [x - way * 4, y - 5], [x - way * 4, y + 5]] }, style };
              return { type: "circle", shape: { cx: x, cy: y, r: RADIUS }, style };
            } },
        ],
      };
    },
    csv: () => [["result", "claim", "clause", "measured", "replicate", "value", "low", "high", "in_band", "reported"],
      ...[[data.meta.name, data.claims], [comparison?.meta.name, comparison?.claims ?? []]].flatMap(([result, claims]) => claims.flatMap(({ id, clauses }) => clauses.flatMap(({ numbers }, at) => numbers.flatMap((one) => one.values.map((value, row) => [result, id, at + 1, one.label, one.replicates[row], value, one.lows[row], one.highs[row], one.holds[row], one.reported])))))],
  });
  subscribe(["claim"], () => {
    claim.value = chosen.claim;
    made.redraw();
  });
  function tip({ row, one, at, other }) {
    const who = other ? `${escaped(comparison.meta.name)}, ` : "";
    const paper = one.reported ? `<br>paper: ${escaped(one.reported)}` : "";
    return `<b>${escaped(row.claim.id)}</b>: ${escaped(one.label)}<br>${who}replicate ${one.replicates[at]}: ${number(one.values[at])}, ${one.holds[at] ? "in" : "outside"} the band ${escaped(one.band)}<br>median (range) ${spreadOf(one)}; in the band ${heldOf(one)}${paper}<br>${escaped(row.clause.explained)}`;
  }
}
