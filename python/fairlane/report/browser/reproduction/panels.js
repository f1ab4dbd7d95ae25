/** Panels of a paper's figures, as figures.toml describes them: boxes, strips, points, bars, lines, heat maps. */

import { escaped, number, percent } from "report/format";
import { PALETTE, colours, ramp } from "report/theme";
import { uprightWhiskers } from "report/whiskers";

const SYMBOLS = ["circle", "rect", "diamond", "triangle", "roundRect", "pin"];
const distinct = (values) => [...new Set(values)];
const plain = (value) => String(value).replaceAll("_", " ");

/** A panel for each value of the columns `column` and `row`, with its rows by series. */
export function facetsOf({ look, columns, logarithmic }) {
  const count = Object.values(columns)[0]?.length ?? 0;
  const rows = Array.from({ length: count }, (_, at) => Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[at]])));
  const values = (name) => (name ? distinct(columns[name]) : [null]);
  const names = values(look.series);
  const found = [];
  for (const row of values(look.row)) {
    for (const column of values(look.column)) {
      const of = rows.filter((one) => (row === null || one[look.row] === row) && (column === null || one[look.column] === column));
      if (!of.length) continue;
      const series = names.map((name, at) => ({
        name, title: name === null ? plain(look.y_label || look.y) : plain(name), at, colour: look.colours[String(name)] ?? PALETTE[at % PALETTE.length],
        rows: name === null ? of : of.filter((one) => one[look.series] === name),
      })).filter((one) => one.rows.length);
      found.push({ look, rows: of, series, log: logarithmic.some(([down, across]) => down === row && across === column), title: [row, column].filter((value) => value !== null).map(plain).join(", ") || plain(look.title) });
    }
  }
  return found;
}

const isNumeric = (rows, name) => rows.every((row) => row[name] === null || typeof row[name] === "number");

/** Axes and series of a panel in the grid of this number, which is so many pixels wide. */
export function facetOption(facet, grid, wide) {
  if (facet.look.kind === "heatmap") return heatmap(facet, grid);
  const { look, rows, series, log } = facet;
  const numeric = isNumeric(rows, look.x) && (look.kind === "lines" || look.kind === "scatter");
  const sorted = isNumeric(rows, look.x) ? distinct(rows.map((row) => row[look.x])).sort((a, b) => a - b) : distinct(rows.map((row) => row[look.x]));
  const form = (value) => (look.percent ? percent(value, look.y_scale === "linear").replace(".0%", "%") : number(value));
  const place = (row) => (numeric ? row[look.x] : sorted.indexOf(row[look.x]));
  const xAxis = numeric
    ? { type: look.x_scale === "linear" ? "value" : "log", ...(look.x_scale === "log2" && { logBase: 2 }), scale: true, gridIndex: grid, name: look.x_label, nameGap: 30, axisLabel: { hideOverlap: true, formatter: number } }
    : { type: "category", data: sorted.map(plain), gridIndex: grid, name: look.x_label, nameGap: 38, axisLabel: { hideOverlap: true, interval: sorted.length > 12 ? "auto" : 0, rotate: sorted.length > 8 ? 30 : 0, width: sorted.length > 8 ? 90 : wide / sorted.length - 6, overflow: "truncate" } };
  const yAxis = { type: log ? "log" : "value", scale: look.y_scale === "linear", ...(!log && look.y_scale !== "linear" && { min: 0 }), gridIndex: grid, name: look.y_label, nameGap: 46, axisLabel: { hideOverlap: true, formatter: form } };
  const context = { facet, grid, place, form, sorted, numeric };
  const made = series.flatMap((one) => KINDS[look.kind](one, context).map((each) => ({ xAxisIndex: grid, yAxisIndex: grid, ...each })));
  if (made.length) Object.assign(made[0], marks(look, rows));
  return { xAxis, yAxis, series: made };
}

/** Dashed lines at the values of columns. */
function marks({ lines, x_lines: upright }, rows) {
  const found = [...lines.map((name) => ({ yAxis: rows[0][name] })), ...upright.map((name) => ({ xAxis: rows[0][name] }))].filter((one) => Object.values(one)[0] !== null && Object.values(one)[0] !== undefined);
  return found.length ? { markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours().ink, type: "dashed", width: 1.2 }, data: found } } : {};
}

function tip({ look }, { name }, row, form) {
  const parts = [name === null ? null : plain(name), `${escaped(look.x_label || look.x)}: ${escaped(row[look.x])}`, `${escaped(look.y_label || look.y)}: ${form(row[look.y])}`];
  const interval = look.low && row[look.low] !== null ? `${form(row[look.low])} to ${form(row[look.high])}` : null;
  return [...parts.map((part, at) => (at === 0 && part ? `<b>${escaped(part)}</b>` : part)), interval].filter(Boolean).join("<br>");
}
const item = (one, { facet, place, form }, row, more = {}) => ({ value: [place(row), row[facet.look.y]], tooltip: { formatter: () => tip(facet, one, row, form) }, ...more });

const intervals = (one, { facet: { look }, place }) => (look.low && look.high ? [uprightWhiskers(one.rows.map((row) => [place(row), row[look.low], row[look.high]]), one.colour)] : []);

const KINDS = {
  lines: (one, context) => [
    { type: "line", name: one.title, color: one.colour, symbol: SYMBOLS[one.at % SYMBOLS.length], symbolSize: 7, lineStyle: { width: 1.8 }, data: one.rows.map((row) => item(one, context, row)) },
    ...intervals(one, context),
  ],
  scatter: (one, context) => [{ type: "scatter", name: one.title, color: one.colour, symbolSize: one.rows.length > 200 ? 5 : 8, itemStyle: { opacity: 0.75 }, data: one.rows.map((row) => item(one, context, row)) }, ...intervals(one, context)],
  /** Dots with a shift for each series, and a small one for each dot, so that few are hidden. */
  strip: (one, context) => {
    const of = context.facet.series.length;
    const shift = (at) => (one.at - (of - 1) / 2) * 14 + ((at * 7) % 11) - 5;
    return [{ type: "scatter", name: one.title, color: one.colour, symbolSize: 5, itemStyle: { opacity: 0.6 }, data: one.rows.map((row, at) => item(one, context, row, { symbolOffset: [shift(at), 0] })) }];
  },
  bars: (one, context) => [{
    type: "bar", name: one.title, color: one.colour, barMaxWidth: 26, ...(context.facet.look.stacked && { stack: "all" }),
    data: context.sorted.map((x) => { const row = one.rows.find((each) => each[context.facet.look.x] === x); return row ? item(one, context, row) : null; }),
  }],
  box: (one, { facet: { look }, sorted, form }) => [{
    type: "boxplot", name: one.title, color: one.colour, boxWidth: [4, 26], itemStyle: { color: one.colour, borderColor: colours().ink, opacity: 0.85 },
    data: sorted.map((x) => {
      const row = one.rows.find((each) => each[look.x] === x);
      if (!row) return null;
      const words = `<b>${escaped(one.name === null ? plain(x) : `${plain(one.name)}, ${plain(x)}`)}</b><br>median ${form(row.q2)}<br>quartiles ${form(row.q1)} and ${form(row.q3)}<br>whiskers: ${form(row.q0)} and ${form(row.q4)} (${row.whiskers})`;
      return { value: [row.q0, row.q1, row.q2, row.q3, row.q4], tooltip: { formatter: () => words } };
    }),
  }],
};

function heatmap({ look, rows }, grid) {
  const [across, down] = [distinct(rows.map((row) => row[look.x])), distinct(rows.map((row) => row[look.y]))];
  const log = look.y_scale === "log";
  const known = rows.filter((row) => row[look.value] !== null && (!log || row[look.value] > 0));
  const colour = (value) => (log ? Math.log10(value) : value);
  const values = known.map((row) => colour(row[look.value]));
  const back = (value) => number(log ? 10 ** value : value);
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const axis = { type: "category", gridIndex: grid, splitLine: { show: false }, axisLabel: { hideOverlap: true, width: 56, overflow: "truncate" } };
  return {
    xAxis: { ...axis, data: across.map(plain), name: look.x_label, nameGap: 34 }, yAxis: { ...axis, data: down.map(plain), name: look.y_label, nameGap: 50, inverse: true },
    heat: { type: "continuous", min, max, dimension: 2, inRange: { color: ramp(16) }, text: [back(max), back(min)], itemHeight: 120, itemWidth: 12 },
    series: [{
      type: "heatmap", xAxisIndex: grid, yAxisIndex: grid, progressive: 0,
      data: known.map((row) => ({ value: [across.indexOf(row[look.x]), down.indexOf(row[look.y]), colour(row[look.value])], tooltip: { formatter: () => `${escaped(row[look.y])}, ${escaped(row[look.x])}<br>${number(row[look.value])}` } })),
    }],
  };
}
