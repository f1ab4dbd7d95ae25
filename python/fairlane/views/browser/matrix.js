/** The interference matrix: rows are victims, columns aggressors; in order of similarity, filtered, grouped. */

import { canvasIn, colours, csvOf, drawLegend, element, inkOn, labelled, percent, scaleOf, seconds, select, Svg } from "fairlane/kit";
import { choose, chosen, subscribe } from "fairlane/state";

const COUNTERPARTS = 12; // jobs that are shown beside those of a filter
const MOST_NUMBERS = 12; // columns up to which cells have numbers
const LABELS = 120; // px for names
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export async function start(section, data, page) {
  const { jobs, own: cells, compare } = data;
  const count = jobs.name.length;
  const dense = ({ victim, aggressor, queueing_s: delay }) => {
    const found = new Float64Array(count * count);
    victim.forEach((row, at) => { found[row * count + aggressor[at]] = delay[at]; });
    return found;
  };
  const own = dense(cells);
  const other = compare && dense(compare);
  const background = jobs.background.some(Boolean);
  const order = select("matrix-order", [["similar", "similar jobs together"], ["scenario", "as in the scenario"], ["name", "by name"]], () => redraw());
  const filter = element("input", { id: "matrix-filter", type: "search", placeholder: "name or workload", oninput: () => redraw() });
  const grouping = element("input", { id: "matrix-background", type: "checkbox", checked: background, oninput: () => redraw() });
  section.querySelector(".controls").append(labelled("Order", order), labelled("Only jobs", filter));
  if (background) section.querySelector(".controls").append(element("label", { className: "control check" }, grouping, "background jobs together"));
  const legend = element("div", { className: "legend" });
  const ariaLabel = "Interference matrix: arrows move between cells, Enter shows the links of a cell";
  const plot = element("div", { id: "matrix-plot", tabIndex: 0, role: "group", ariaLabel });
  const tip = element("p", { className: "note", id: "matrix-tip", role: "status" });
  section.querySelector(".custom").append(legend, plot, tip);
  const canvas = element("canvas");
  let shown = [];
  let all = [];
  let at = null; // the cell below the pointer or the cursor, by its column and row

  /** Queueing delay, s, that the jobs of a column cause those of a row. */
  function delayIn(of, row, column) {
    let sum = 0;
    for (const victim of row.members) for (const aggressor of column.members) sum += of[victim * count + aggressor];
    return sum;
  }

  /** Rows and columns: each some jobs, with a name. */
  function groups() {
    const numbers = order.value === "similar" ? [...cells.order] : jobs.name.map((_, job) => job);
    if (order.value === "name") numbers.sort((a, b) => jobs.name[a].localeCompare(jobs.name[b], "en", { numeric: true }));
    const apart = background && grouping.checked;
    const found = numbers.filter((job) => !apart || !jobs.background[job]).map((job) => ({ name: jobs.name[job], members: [job] }));
    const members = numbers.filter((job) => jobs.background[job]);
    if (apart) found.push({ name: `background (${members.length} jobs)`, members });
    const words = filter.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    if (!words.length) return found;
    const wanted = found.filter(({ name, members: of }) => words.some((word) => name.toLowerCase().includes(word) || of.some((job) => jobs.workload[job].toLowerCase().includes(word))));
    const delay = (group) => wanted.reduce((sum, one) => sum + delayIn(own, group, one) + delayIn(own, one, group), 0);
    const others = found.filter((group) => !wanted.includes(group)).map((group) => [group, delay(group)]).filter(([, sum]) => sum > 0);
    const kept = new Set([...wanted, ...others.sort((a, b) => b[1] - a[1]).slice(0, COUNTERPARTS).map(([group]) => group)]);
    return found.filter((group) => kept.has(group));
  }

  /** All cells that are shown: row, column, seconds (or the difference), share of the victim's rank time. */
  function cellsOf() {
    return shown.flatMap((row, y) => {
      const time = row.members.reduce((sum, job) => sum + jobs.rank_time_s[job], 0);
      return shown.map((column, x) => {
        const delay = delayIn(own, row, column) - (chosen.difference ? delayIn(other, row, column) : 0);
        return { x, y, delay, share: time ? delay / time : 0, itself: row === column && row.members.length === 1 };
      });
    });
  }

  const side = () => Math.max(6, Math.min(58, (plot.clientWidth - LABELS - 20) / Math.max(shown.length, 1)));
  const tall = () => Math.min(side(), 34);
  const text = (value) => percent(value, chosen.difference);

  function draw(context, scale) {
    const { ink, faint, card } = colours();
    const [wide, high] = [side(), tall()];
    const cut = (name) => (name.length > 16 ? `${name.slice(0, 15)}…` : name);
    context.clearRect(0, 0, plot.clientWidth, 5000);
    for (const { x, y, share, delay, itself } of all) {
      const place = itself ? null : scale.of(share);
      const colour = itself ? faint : place === null ? card : scale.colour(place);
      context.beginPath();
      context.rect(LABELS + x * wide, y * high, Math.max(wide - 1, 1), Math.max(high - 1, 1));
      context.fillStyle = colour;
      if (delay !== 0) context.fill();
      if (shown.length > MOST_NUMBERS || delay === 0) continue;
      Object.assign(context, { fillStyle: inkOn(colour), font: "12px system-ui, sans-serif", textAlign: "center", textBaseline: "middle" });
      context.fillText(text(share), LABELS + (x + 0.5) * wide, (y + 0.5) * high);
    }
    const size = Math.max(6, Math.min(12, high));
    Object.assign(context, { fillStyle: ink, font: `${size}px system-ui, sans-serif`, textBaseline: "middle" });
    const step = Math.ceil(9 / high); // names that fit
    shown.forEach(({ name }, row) => {
      if (row % step) return;
      context.textAlign = "right";
      context.fillText(cut(name), LABELS - 6, (row + 0.5) * high);
      const [x, y] = [LABELS + (row + 0.5) * wide, shown.length * high + 8];
      if (context.rotate) {
        context.save();
        context.translate(x, y);
        context.rotate(-Math.PI / 3);
        context.fillText(cut(name), 0, 0);
        context.restore();
      } else {
        context.turn = `rotate(-60 ${x} ${y})`;
        context.fillText(cut(name), x, y);
        context.turn = "";
      }
    });
    if (at && context.rotate) {
      context.beginPath();
      context.rect(LABELS + at[0] * wide, at[1] * high, wide - 1, high - 1);
      Object.assign(context, { strokeStyle: ink, lineWidth: 2 });
      context.stroke();
    }
  }

  const scaleNow = () => scaleOf(all.filter(({ itself }) => !itself).map(({ share }) => share), data.scale, { signed: chosen.difference, stops: data.ramp });
  const height = () => shown.length * tall() + 110;

  function paint() {
    plot.style.height = `${height()}px`;
    const scale = scaleNow();
    drawLegend(legend, scale, "Queueing delay, share of the victim's rank time", text);
    draw(canvasIn(plot, plot.clientWidth, height(), canvas), scale);
  }

  function redraw() {
    shown = groups();
    all = cellsOf();
    at = null;
    tip.textContent = "Rows: victims. Columns: aggressors.";
    paint();
  }

  function look(cell) {
    if (String(cell) === String(at)) return;
    at = cell;
    paint();
    if (!cell) return;
    const { x, y, delay, share, itself } = all[cell[1] * shown.length + cell[0]];
    const amount = chosen.difference ? `${delay < 0 ? "−" : "+"}${seconds(Math.abs(delay))}` : seconds(delay);
    tip.textContent = `${shown[y].name}, delayed by ${itself ? "its own packets" : shown[x].name}: queueing delay ${amount}, ${text(share)} of the victim's rank time`;
  }

  function pick() {
    if (!at) return;
    choose({ victim: shown[at[1]].members, aggressor: shown[at[0]].members, ...(page.parts.fabric?.hasPairs && { metric: "jobs" }) });
    document.getElementById("fabric").scrollIntoView({ block: "start" });
  }

  const cellAt = ({ offsetX, offsetY }) => {
    const found = [Math.floor((offsetX - LABELS) / side()), Math.floor(offsetY / tall())];
    return found.every((one) => one >= 0 && one < shown.length) ? found : null;
  };
  plot.addEventListener("mousemove", (event) => look(cellAt(event)));
  plot.addEventListener("click", (event) => {
    look(cellAt(event));
    pick();
  });
  plot.addEventListener("keydown", (event) => {
    if (event.key === "Enter") pick();
    else if (event.key in KEYS) look(KEYS[event.key].map((by, axis) => Math.min(Math.max(0, (at?.[axis] ?? -by) + by), shown.length - 1)));
    else return;
    event.preventDefault();
  });
  redraw();
  new ResizeObserver(paint).observe(section);
  page.onTheme(paint);
  subscribe(["difference"], redraw);
  return {
    names: () => shown.map(({ name }) => name),
    pixelOf: (x, y) => [LABELS + (x + 0.5) * side(), (y + 0.5) * tall()],
    csv: () => csvOf([["victim", "aggressor", chosen.difference ? "queueing_difference_s" : "queueing_s", "share_of_rank_time"], ...all.map(({ x, y, delay, share }) => [shown[y].name, shown[x].name, delay, share])]),
    svg: () => {
      const svg = new Svg(plot.clientWidth, height());
      draw(svg, scaleNow());
      return svg.toString();
    },
  };
}
