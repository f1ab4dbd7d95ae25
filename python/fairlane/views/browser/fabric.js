/** The fabric: links in colours, hosts and switches; pan, zoom, hover, click and keys. */

import { startControls } from "fairlane/controls";
import { startDetails } from "fairlane/details";
import { geometryOf } from "fairlane/geometry";
import { canvasIn, colours, csvOf, drawLegend, element, scaleOf, Svg } from "fairlane/kit";
import { choose, chosen, METRICS, subscribe, valuesOf } from "fairlane/state";

const BINS = 24; // colours of links; all links of one are drawn at once
const REACH = 8; // pixels from which a link is found
const MARGIN = 0.06; // of the plot, around the whole fabric
const MOST_ZOOM = 400;
const CLICK = 4; // pixels that a pointer may move in a click
const MOVES = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };

export async function start(section, data, page) {
  const { fabric, jobs } = data;
  const { links } = fabric;
  const hostCount = fabric.hosts.length;
  const geometry = geometryOf(fabric);
  const { linkCount, vertexCount, placeOf, pathOf, ends, sizes } = geometry;
  const source = valuesOf(data, linkCount);
  const body = section.querySelector(".custom");
  const legend = element("div", { className: "legend", id: "fabric-legend" });
  const plot = element("div", { id: "fabric-plot", tabIndex: 0, role: "group", ariaLabel: "Fabric" });
  const tip = element("div", { id: "fabric-tip", hidden: true, role: "status" });
  plot.setAttribute("aria-describedby", "fabric-note");
  const aside = element("aside", { ariaLabel: "What is chosen in the fabric" }, element("div", { id: "details" }), element("div", { id: "top-links" }));
  body.append(legend, element("div", { className: "fabric" }, element("div", { className: "view" }, plot, tip), aside));
  const layers = [element("canvas"), element("canvas")]; // what is chosen is drawn above the rest
  let view = { x: 0, y: 0, zoom: 1 }; // the place in the middle, and the size against that of the whole
  let contexts = [];
  let values = source.current();
  let scale = null;

  const vertexName = (vertex) => (vertex < hostCount ? fabric.hosts[vertex] : fabric.switches[vertex - hostCount]);
  const linkName = (link) => `${vertexName(links.from[link])} port ${links.from_port[link]} to ${vertexName(links.to[link])}`;
  const jobsOf = (vertex) => jobs.hosts.flatMap((hosts, job) => (hosts.includes(vertex) ? [job] : []));
  const form = (value) => METRICS[chosen.metric].form(value);

  /** Pixels of a unit of places. */
  const unit = () => {
    const room = [plot.clientWidth, plot.clientHeight].map((size) => size * (1 - 2 * MARGIN));
    return view.zoom * Math.min(room[0] / (sizes[0] || 1), room[1] / (sizes[1] || 1));
  };
  const pixel = ([x, y]) => [plot.clientWidth / 2 + (x - view.x) * unit(), plot.clientHeight / 2 - (y - view.y) * unit()];
  const placeAt = (x, y) => [view.x + (x - plot.clientWidth / 2) / unit(), view.y - (y - plot.clientHeight / 2) / unit()];
  const home = () => ({ x: (ends[0][0] + ends[0][1]) / 2, y: (ends[1][0] + ends[1][1]) / 2, zoom: 1 });

  function trace(context, path) {
    const factor = unit();
    const [left, top] = pixel([0, 0]);
    path.forEach(([x, y], at) => (at ? context.lineTo(left + factor * x, top - factor * y) : context.moveTo(left + factor * x, top - factor * y)));
  }

  function drawLinks(context) {
    const { faint } = colours();
    const bins = Array.from({ length: BINS + 1 }, () => []);
    values.forEach((value, link) => {
      const at = scale.of(value);
      bins[at === null ? 0 : 1 + Math.min(BINS - 1, Math.floor(at * BINS))].push(link);
    });
    // Of a difference, the largest changes of either sign are drawn last.
    const rank = (bin) => (bin === 0 ? -1 : chosen.difference ? Math.abs(bin - 0.5 - BINS / 2) : bin);
    const width = Math.min(1.7, Math.max(0.7, 1800 / linkCount));
    bins.map((group, bin) => ({ group, bin })).sort((a, b) => rank(a.bin) - rank(b.bin)).forEach(({ group, bin }) => {
      context.beginPath();
      for (const link of group) trace(context, pathOf(link));
      context.strokeStyle = bin === 0 ? faint : scale.colour((bin - 0.5) / BINS);
      context.lineWidth = bin === 0 ? 0.6 * width : width * (1 + (0.9 * rank(bin)) / BINS);
      context.globalAlpha = bin === 0 ? 0.55 : 0.95;
      if (group.length) context.stroke();
    });
  }

  function drawVertices(context) {
    const { ink, muted, palette0, palette1 } = colours();
    const size = Math.min(12, Math.max(2.5, Math.sqrt((plot.clientWidth * plot.clientHeight) / vertexCount) / 3.2));
    context.globalAlpha = 1;
    const marks = (vertices, colour, mark) => {
      context.beginPath();
      for (const vertex of vertices) mark(...pixel(placeOf(vertex)));
      context.fillStyle = colour;
      if (vertices.length) context.fill();
    };
    const circle = (radius) => (x, y) => {
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 2 * Math.PI);
    };
    const range = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);
    const hostsOf = (numbers) => [...new Set((numbers ?? []).flatMap((job) => jobs.hosts[job]))];
    const large = Math.max(3, size / 2);
    marks(range(0, hostCount), muted, circle(Math.max(0.8, size / 4)));
    marks(range(hostCount, vertexCount), ink, (x, y) => context.rect(x - size / 2, y - size / 2, size, size));
    marks(hostsOf(chosen.aggressor), palette1, (x, y) => {
      context.moveTo(x, y - 1.3 * large);
      for (const [dx, dy] of [[1.2, 1], [-1.2, 1], [0, -1.3]]) context.lineTo(x + dx * large, y + dy * large);
    });
    marks(hostsOf(chosen.victim), palette0, circle(large));
  }

  function drawOverlay(hovered = { link: null, vertex: null }) {
    const context = contexts[1];
    const { ink, palette1 } = colours();
    context.clearRect(0, 0, plot.clientWidth, plot.clientHeight);
    for (const { link, vertex, colour } of [{ ...hovered, colour: ink }, { link: chosen.link, vertex: chosen.vertex, colour: palette1 }]) {
      context.beginPath();
      context.strokeStyle = colour;
      context.lineWidth = 3;
      if (link !== null) trace(context, pathOf(link));
      if (vertex !== null) {
        const [x, y] = pixel(placeOf(vertex));
        context.moveTo(x + 9, y);
        context.arc(x, y, 9, 0, 2 * Math.PI);
      }
      context.stroke();
    }
  }

  function draw() {
    contexts[0].clearRect(0, 0, plot.clientWidth, plot.clientHeight);
    drawLinks(contexts[0]);
    drawVertices(contexts[0]);
    drawOverlay();
  }

  let waiting = false;
  function later() {
    if (!waiting) requestAnimationFrame(() => { waiting = false; draw(); });
    waiting = true;
  }

  /** Draws all anew for what is chosen. */
  function redraw() {
    values = source.current();
    scale = scaleOf([...values, source.highest()], data.scale, { signed: chosen.difference });
    const { label, unit: words } = METRICS[chosen.metric];
    drawLegend(legend, scale, `${label}, ${chosen.difference ? "difference of " : ""}${words}`, form);
    draw();
  }

  function resize() {
    contexts = layers.map((canvas) => canvasIn(plot, plot.clientWidth, plot.clientHeight, canvas));
    redraw();
  }

  /** Zooms by a factor about a place of the plot. */
  function zoom(factor, [x, y] = [plot.clientWidth / 2, plot.clientHeight / 2]) {
    const before = placeAt(x, y);
    view.zoom = Math.min(MOST_ZOOM, Math.max(0.5, view.zoom * factor));
    const after = placeAt(x, y);
    look({ x: view.x + before[0] - after[0], y: view.y + before[1] - after[1] });
  }

  function look(changes) {
    view = { ...view, ...changes };
    later();
  }
  const move = (dx, dy) => look({ x: view.x - dx / unit(), y: view.y + dy / unit() });
  const reset = () => look(home());

  /** Centres the view on a link or vertex. */
  function show({ link = null, vertex = null }) {
    const path = vertex === null ? pathOf(link) : [placeOf(vertex)];
    const [[ax, ay], [bx, by]] = [path[0], path.at(-1)];
    look({ x: (ax + bx) / 2, y: (ay + by) / 2 });
  }

  function find(event) {
    const { link = null, vertex = null } = geometry.nearest(...placeAt(event.offsetX, event.offsetY), REACH / unit());
    return { link, vertex };
  }

  function hover(event) {
    const { link, vertex } = find(event);
    tip.hidden = link === null && vertex === null;
    plot.style.cursor = tip.hidden ? "grab" : "pointer";
    drawOverlay({ link, vertex });
    if (tip.hidden) return;
    const here = vertex !== null && vertex < hostCount ? jobsOf(vertex).map((job) => jobs.name[job]).join(", ") : "";
    if (link !== null) tip.textContent = `${linkName(link)}: ${METRICS[chosen.metric].label.toLowerCase()} ${form(values[link])}`;
    else tip.textContent = `${vertexName(vertex)}: ${vertex >= hostCount ? "switch" : here ? `host of ${here}` : "host, no job"}`;
    tip.style.left = `${Math.max(4, Math.min(event.offsetX + 14, plot.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, event.offsetY - tip.offsetHeight - 10)}px`;
  }

  /** Drag, wheel and pinch. */
  function listen() {
    const pointers = new Map();
    let moved = false;
    const at = ({ clientX, clientY }) => {
      const box = plot.getBoundingClientRect();
      return [clientX - box.left, clientY - box.top];
    };
    plot.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * 0.0016), at(event));
    }, { passive: false });
    plot.addEventListener("pointerdown", (event) => {
      if (!pointers.size) moved = false;
      pointers.set(event.pointerId, at(event));
    });
    window.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const [x, y] = at(event);
      if (!moved && Math.hypot(x - before[0], y - before[1]) < CLICK) return;
      moved = true;
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) zoom(Math.hypot(x - other[0], y - other[1]) / (Math.hypot(before[0] - other[0], before[1] - other[1]) || 1), other);
      else move(x - before[0], y - before[1]);
      pointers.set(event.pointerId, [x, y]);
    });
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, (event) => pointers.delete(event.pointerId));
    plot.addEventListener("mousemove", (event) => (pointers.size ? tip.setAttribute("hidden", "") : hover(event)));
    plot.addEventListener("mouseleave", () => {
      tip.hidden = true;
      drawOverlay();
    });
    plot.addEventListener("click", (event) => {
      if (!moved) choose(find(event));
    });
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey) return;
      if (event.key === "0") reset();
      else if (event.key === "Escape") choose({ link: null, vertex: null });
      else if (event.key in MOVES) move(MOVES[event.key][0] * plot.clientWidth, MOVES[event.key][1] * plot.clientHeight);
      else if ("+=-".includes(event.key)) zoom(event.key === "-" ? 0.8 : 1.25);
      else return;
      event.preventDefault();
    });
  }

  const used = { data, geometry, source, page, vertexName, linkName, jobsOf, show, zoom, reset, form, hostCount, values: () => values };
  view = home();
  startControls(section, used);
  resize();
  subscribe(["metric", "victim", "aggressor", "interval", "difference"], redraw); // before the details, which show values
  startDetails(used);
  listen();
  new ResizeObserver(resize).observe(plot);
  page.onTheme(redraw);
  subscribe(["link", "vertex"], () => drawOverlay());
  // Charts show the chosen jobs, and a click on a mark of a job chooses it.
  const names = () => [...(chosen.victim ?? []), ...(chosen.aggressor ?? [])].map((job) => jobs.name[job]);
  subscribe(["victim", "aggressor"], () => page.signal("chosen", names()));
  page.onClick(({ job }) => {
    const victim = jobs.name.indexOf(job);
    if (victim >= 0) choose({ victim: [victim], aggressor: null, ...(data.by_jobs && { metric: "jobs" }) });
  });

  const columns = ["link", "from", "to", "role", "bandwidth_bps", "active_share", "stalled_share", "mean_queue", "bytes"];
  return {
    hasPairs: data.by_jobs !== null,
    values: () => Array.from(values),
    zoom: () => view.zoom,
    /** The pixel at a part of the way along a link. */
    pixelOf: (link, part) => pixel(pathOf(link)[0].map((from, axis) => from + part * (pathOf(link).at(-1)[axis] - from))),
    csv: () => csvOf([[...columns, chosen.metric === "jobs" ? "queueing_s" : "value"], ...Array.from({ length: linkCount }, (_, link) => [
      linkName(link), vertexName(links.from[link]), vertexName(links.to[link]), fabric.roles[links.role[link]], fabric.bandwidths[links.bandwidth[link]],
      ...["active", "stalled", "queue", "bytes"].map((name) => data.measured?.[name][link]), values[link],
    ])]),
    svg: () => {
      const svg = new Svg(plot.clientWidth, plot.clientHeight);
      drawLinks(svg);
      drawVertices(svg);
      return svg.toString();
    },
  };
}
