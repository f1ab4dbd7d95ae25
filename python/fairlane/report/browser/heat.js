/** Heat maps: a colour for each pair of a row and a column. */

import { colours } from "report/theme";

const MOST_NUMBERS = 12; // columns up to which cells have numbers
export const BINS = 32; // of a scale of colours

/** Width of a cell, px, of so many columns. */
export const side = (count) => Math.max(12, Math.min(58, 620 / Math.max(count, 1)));

/** Height of the names of columns, px. */
const labelRoom = (names) => Math.round(Math.min(170, Math.max(50, 6.3 * Math.max(0, ...names.map((name) => name.length)))));

/** Height of a heat map, px, with rows of this height. */
export const heatHeight = (rows, columns, high) => 50 + labelRoom(columns) + high * rows.length;

/**
 * The option of a heat map.
 *
 * @param {object} given `rows` and `columns` with `names` and a `title`; `cells` with `x`, `y`, `value`, and if wanted
 *   `grey` (without a colour), `label` (text in the cell) and `more` (anything); `scale` (see scale.js); `form(value)` as text; `tip(cell)` as HTML;
 *   and if wanted `numbers`, whether cells show their values, and `room` for names of rows, px.
 */
export function heatOption({ rows, columns, cells, scale, form, tip, numbers = columns.names.length <= MOST_NUMBERS, room: left = 110 }) {
  const { faint, ink, card } = colours();
  const size = numbers ? 12 : 10;
  const items = cells.map((cell) => {
    const place = cell.grey ? -1 : scale.of(cell.value) ?? (scale.low < 0 ? 0.5 : 0);
    const colour = cell.grey ? faint : scale.colours[Math.floor(place * (BINS - 1))];
    return {
      value: [cell.x, cell.y, place], cell,
      ...(cell.grey && { visualMap: false, itemStyle: { color: faint } }),
      ...(numbers && { label: { show: true, formatter: cell.label ?? form(cell.value), color: labelColour(colour) } }),
    };
  });
  const axis = { type: "category", splitLine: { show: false }, axisLabel: { interval: 0, fontSize: size, width: 110, overflow: "truncate" } };
  const room = labelRoom(columns.names);
  return {
    grid: { left: left + 20, right: 90, top: 12, bottom: room + 32 },
    xAxis: { ...axis, data: columns.names, name: columns.title, nameGap: room + 12, axisLabel: { ...axis.axisLabel, width: room / Math.sin(Math.PI / 3), rotate: 60 } },
    yAxis: { ...axis, data: rows.names, name: rows.title, nameGap: left + 6, inverse: true, axisLabel: { ...axis.axisLabel, width: left } },
    visualMap: { type: "continuous", min: 0, max: 1, dimension: 2, right: 0, top: "middle", text: [form(scale.high), form(scale.low)], textStyle: { color: ink }, inRange: { color: scale.colours }, itemHeight: 160 },
    tooltip: { formatter: ({ data }) => tip(data.cell) },
    series: [{ type: "heatmap", data: items, progressive: 0, itemStyle: { borderColor: card, borderWidth: numbers ? 1.5 : 0.5 }, emphasis: { itemStyle: { borderColor: ink, borderWidth: 1.5 } } }],
  };
}

/** Black or white, whichever can be read on a colour. */
function labelColour(colour) {
  const [red, green, blue] = colour.startsWith("#") ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255) : [1, 1, 1];
  const [r, g, b] = [red, green, blue].map((part) => (part <= 0.04 ? part / 12.9 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}
