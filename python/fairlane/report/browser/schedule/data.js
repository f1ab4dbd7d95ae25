/** What figures of schedules have in common: allocators and their colours. */

import { comparison, data } from "report/data";
import { PALETTE } from "report/theme";

export const names = data.allocators.map(({ allocator }) => allocator);
const all = [...new Set([...names, ...(comparison?.allocators ?? []).map(({ allocator }) => allocator)])];
export const colourOf = (allocator) => PALETTE[all.indexOf(allocator) % PALETTE.length];

/** This result and, if there is one, the other, each with what it measured and how its lines look. */
export const sides = [
  { of: data, suffix: "", type: "solid", name: data.meta.name },
  ...(comparison ? [{ of: comparison, suffix: `, ${comparison.meta.name}`, type: "dashed", name: comparison.meta.name }] : []),
];

/** Numbers of hosts above which jobs have a colour of their own. */
const SIZES = [[1, 7], [8, 31], [32, 127], [128, Infinity]];
export const sizeClass = (hosts) => SIZES.findIndex(([low, high]) => hosts >= low && hosts <= high);
export const sizeNames = SIZES.map(([low, high]) => (high === Infinity ? `${low} hosts and more` : `${low} to ${high} hosts`));
