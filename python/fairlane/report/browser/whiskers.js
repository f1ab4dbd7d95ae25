/** Intervals as whiskers in charts with a row for each job, treatment or allocator. */

import { colours } from "report/theme";

/** Whiskers from `low` to `high` at the middle of each row; rows without an interval have none. */
export const whiskers = (rows) => ({
  type: "custom", silent: true, z: 5, name: "95% interval", encode: { x: [1, 2], y: 0 },
  data: rows.map(({ low, high }, at) => [at, low, high]).filter(([, low, high]) => low !== null && high !== null && low !== undefined),
  renderItem: (_, api) => {
    const [left, y] = api.coord([api.value(1), api.value(0)]);
    const [right] = api.coord([api.value(2), api.value(0)]);
    const style = { stroke: colours().ink, lineWidth: 1.2, fill: null };
    const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
    return { type: "group", children: [line(left, y, right, y), line(left, y - 3, left, y + 3), line(right, y - 3, right, y + 3)] };
  },
});
