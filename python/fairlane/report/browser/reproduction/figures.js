/** The figures of a paper: each a card with its panels side by side, or below each other where there is no room. */

import { figure } from "report/chart";
import { data } from "report/data";
import { facetsOf, facetOption } from "report/reproduction/panels";
import { colours } from "report/theme";

const HIGH = 250; // px of a panel
const [ABOVE, BELOW, LEFT, RIGHT] = [30, 62, 64, 16];
const WIDE = 340; // px that a panel needs
const LEGEND = 34;

/** How many panels stand side by side: as many as have room, in rows of about the same number. */
function columnsOf(facets, width) {
  const most = Math.max(1, Math.min(facets.length, Math.floor(width / WIDE)));
  return Math.ceil(facets.length / Math.ceil(facets.length / most));
}
const cut = (text) => (text.length > 44 ? `${text.slice(0, 42)}…` : text);

export function startFigures() {
  data.figures.forEach((one, at) => add(one, at));
}

function add({ id: file, title, note, sentence, panels }, at) {
  const id = `figure-${at}`;
  const facets = panels.flatMap((panel) => facetsOf(panel));
  const series = [...new Map(facets.flatMap(({ series: of }) => of.map((each) => [each.title, each]))).values()];
  const left = panels.filter(({ shown, rows, look }) => look.kind !== "box" && shown < rows);
  const reduced = left.length ? ` ${left.map(({ shown, rows }) => `${shown} of ${rows}`).join(", ")} rows, evenly spaced.` : "";
  const whiskers = [...new Set(panels.filter(({ look }) => look.kind === "box").flatMap(({ columns }) => columns.whiskers))];
  const boxes = whiskers.length ? ` Boxes: quartiles and median; whiskers: ${whiskers.join("; or of few values ")}. Values beyond them are in the PNG file.` : "";
  const across = () => columnsOf(facets, document.getElementById(`${id}-plot`)?.clientWidth || 1000);
  figure({
    id, wide: facets.length > 1, responsive: true, title, sentence, note: `${note ? `${note.replace(/\.?$/, ".")} ` : ""}File ${file}.${boxes}${reduced}`,
    height: () => LEGEND + Math.ceil(facets.length / across()) * (ABOVE + HIGH + BELOW),
    option: (width = 1000) => {
      const many = columnsOf(facets, width);
      const each = width / many;
      const places = facets.map((_, number) => ({ left: (number % many) * each + LEFT, top: LEGEND + Math.floor(number / many) * (ABOVE + HIGH + BELOW) + ABOVE }));
      const parts = facets.map((facet, number) => facetOption(facet, number, each - LEFT - RIGHT));
      const heat = parts.find((part) => part.heat)?.heat;
      const heatSeries = parts.flatMap((part) => part.series).map(({ type }, number) => (type === "heatmap" ? number : -1)).filter((number) => number >= 0);
      return {
        title: facets.map((facet, number) => ({ text: cut(facet.title), left: places[number].left, top: places[number].top - 24, textStyle: { fontSize: 12.5, color: colours().ink } })),
        grid: places.map((place) => ({ ...place, width: each - LEFT - RIGHT - (heat ? 60 : 0), height: HIGH })),
        xAxis: parts.map(({ xAxis }) => xAxis), yAxis: parts.map(({ yAxis }) => yAxis),
        ...(series.length > 1 && { legend: { top: 0, type: "scroll", data: series.map((one) => ({ name: one.title, itemStyle: { color: one.colour, borderWidth: 0 } })) } }),
        ...(heat && { visualMap: { ...heat, seriesIndex: heatSeries, right: 0, top: "middle", textStyle: { color: colours().ink } } }),
        tooltip: {}, series: parts.flatMap((part) => part.series),
      };
    },
    csv: () => {
      const names = [...new Set(panels.flatMap(({ columns }) => Object.keys(columns)))];
      return [["panel", ...names], ...panels.flatMap(({ columns }, number) => Object.values(columns)[0].map((_, row) => [number + 1, ...names.map((name) => columns[name]?.[row])]))];
    },
  });
}
