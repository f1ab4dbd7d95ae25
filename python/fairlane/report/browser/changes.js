/** The change of each job between two results, with its interval. */

import { LEFT, changeAxis, nameAxis, roomFor } from "report/axes";
import { figure } from "report/chart";
import { comparison } from "report/data";
import { escaped, percent, seconds } from "report/format";
import { PALETTE, colours } from "report/theme";
import { whiskers } from "report/whiskers";

const MOST_NAMES = 8; // jobs of one result only that are named

/** What a row is about: its job, and what a study varies besides. */
const named = ({ name, treatment, condition }) => [name, treatment, condition].filter(Boolean).join(", ");

/**
 * Adds the figure of `comparison.jobs`, rows as `fairlane compare` computes them.
 *
 * @param {object} given `note`, and if wanted `look(row)`, more style of a row's bar, `click(row)`, and `wide`.
 * @returns {object} The figure.
 */
export function changesFigure({ note, look = () => ({}), click, wide = false }) {
  const rows = comparison.jobs.map((row) => ({ ...row, label: named(row), low: row.change_low, high: row.change_high })).sort((a, b) => a.change - b.change);
  const apart = comparison.jobs_apart;
  const only = apart.length ? ` Jobs of one of the two only: ${apart.slice(0, MOST_NAMES).join(", ")}${apart.length > MOST_NAMES ? " ..." : ""}.` : "";
  const names = rows.map(({ label }) => label);
  const colour = ({ change, beyond_noise: certain }) => (certain ? (change > 0 ? PALETTE[0] : PALETTE[1]) : colours().muted);
  const verdict = ({ beyond_noise: certain }) => (certain === null ? "no interval" : certain ? "beyond noise" : "within noise");
  return figure({
    id: "comparison", title: `Change of jobs against ${comparison.meta.name}`, sentence: comparison.sentence, wide, responsive: true, height: () => nameAxis(names).height,
    note: `${note} Whiskers: 95% interval. Blue: more, orange: less; grey: within noise, or not known.${only}`,
    click: click && (({ dataIndex, seriesType }) => seriesType !== "custom" && click(rows[dataIndex])),
    option: (width) => {
      const room = roomFor(names, width);
      const { height, ...parts } = nameAxis(names, room);
      return {
        grid: { ...LEFT, left: room + 12 }, ...parts, xAxis: { ...changeAxis, name: "change of throughput" },
        tooltip: { formatter: ({ dataIndex }) => tip(rows[dataIndex]) },
        series: [{ type: "bar", barMaxWidth: 14, data: rows.map((row) => ({ value: row.change, itemStyle: { color: colour(row), ...look(row) } })) }, whiskers(rows)],
      };
    },
    csv: () => [["job", "treatment", "condition", "of", "before_s", "after_s", "change", "change_low", "change_high", "beyond_noise"], ...rows.map((row) => [row.name, row.treatment, row.condition, row.of, row.before, row.after, row.change, row.low, row.high, row.beyond_noise])],
  });
  function tip(row) {
    return `<b>${escaped(row.label)}</b>: ${percent(row.change, true)} (${verdict(row)})<br>${escaped(row.of)}: ${seconds(row.before)} before, ${seconds(row.after)} now`;
  }
}
