/** Intervals as whiskers. */

import { colours } from "report/theme";

/** A whisker between two places of a chart, with ends across it. */
function drawn([x1, y1], [x2, y2], across, stroke) {
  const line = (from, to) => ({ type: "line", shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] }, style: { stroke, lineWidth: 1.2, fill: null } });
  const [dx, dy] = across;
  const end = (x, y) => line([x - dx, y - dy], [x + dx, y + dy]);
  return { type: "group", children: [line([x1, y1], [x2, y2]), end(x1, y1), end(x2, y2)] };
}

const known = ([, low, high]) => low !== null && high !== null && low !== undefined && high !== undefined;
const base = { type: "custom", silent: true, z: 5, name: "95% interval" };

/** Whiskers from `low` to `high` at the middle of each row of an axis of names; rows without an interval have none. */
export const whiskers = (rows) => ({
  ...base, encode: { x: [1, 2], y: 0 }, data: rows.map(({ low, high }, at) => [at, low, high]).filter(known),
  renderItem: (_, api) => drawn(api.coord([api.value(1), api.value(0)]), api.coord([api.value(2), api.value(0)]), [0, 3], colours().ink),
});

/** Upright whiskers at points [x, low, high] of a line. */
export const uprightWhiskers = (points, colour) => ({
  ...base, encode: { x: 0, y: [1, 2] }, data: points.filter(known),
  renderItem: (_, api) => drawn(api.coord([api.value(0), api.value(1)]), api.coord([api.value(0), api.value(2)]), [3, 0], colour ?? colours().ink),
});
