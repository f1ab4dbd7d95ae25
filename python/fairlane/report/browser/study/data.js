/** What figures of a study have in common: the kinds of its runs, its effects, and how these are written. */

import { percent } from "report/format";
import { data } from "report/data";
import { PALETTE, colours } from "report/theme";

export const { runs } = data;
const treated = runs?.filter((run) => !run.default) ?? [];

/** The colour of a kind of runs: default ones are grey. */
export const runColour = (number) => {
  const run = runs[number];
  return run.default ? (number ? colours().faint : colours().muted) : PALETTE[treated.indexOf(run) % PALETTE.length];
};
export const runSymbol = (number) => ["circle", "rect", "triangle", "diamond", "pin", "arrow"][number % 6];

/** Measures that the study has, the most interesting first. */
export const MEASURES = [
  ["improvement", "Change against the default run"],
  ["w", "Change against the isolated run (W)"],
].filter(([name]) => data.effects?.treatment.some((row) => row[name] !== null));

/** A mean, by default an effect, in words with its interval. */
export function effectWords(value, low, high, form = (share) => percent(share, true)) {
  if (value === null || value === undefined) return "–";
  return low === null || low === undefined ? `${form(value)} (no interval)` : `${form(value)} (95% interval ${form(low)} to ${form(high)})`;
}

/** [value, text] of the kinds of runs that have values of a measure, for a selection. */
export const runOptions = (rows) => runs.map((run, number) => [String(number), run.name]).filter(([number]) => rows.some((row) => row.run === Number(number)));
