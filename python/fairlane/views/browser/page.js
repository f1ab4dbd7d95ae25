// Draws the charts of a page, sorts and filters its tables, and exports both.

const deflated = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
const inflated = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
const { config, charts, csv, custom } = JSON.parse(await new Response(inflated).text());
const NARROW = 600; // px: on narrower charts, names get less room
const PANEL = 250; // px: panels beside each other are not narrower, with their axes
const AXIS = 64;
const ERRORS = 1; // level of messages: warnings are about layers of which no row is chosen
const SCALE = 2; // pixels of an exported PNG for each of the chart

const views = {};
const themed = [];
/** What the parts that are drawn by hand know of the page: each other, its charts, its theme. */
const page = {
  parts: {},
  views,
  csv,
  /** Sets a signal of all charts that have it. */
  signal: (name, value) => Object.values(views).forEach((view) => { if (name in view.getState().signals) view.signal(name, value).run(); }),
  /** Calls with the datum of a mark that is clicked. */
  onClick: (call) => Object.values(views).forEach((view) => view.addEventListener("click", (_, item) => item?.datum && call(item.datum))),
  onTheme: (call) => themed.push(call),
};
window.fairlane = page;

function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A chart as SVG with colours in place of properties of the style sheet, and with a background. */
async function svgOf(view) {
  const style = getComputedStyle(document.documentElement);
  const text = (await view.toSVG()).replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  return text.replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${style.getPropertyValue("--card").trim()}"/>`);
}

async function pngOf(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * image.width, height: SCALE * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Makes a chart as wide as its card: Vega-Lite itself does that for fixed heights only. */
function fitted({ width: _, signals = [], ...vega }) {
  const width = "containerSize()[0]";
  const on = [{ events: "window:resize", update: width }];
  return { ...vega, autosize: { type: "fit-x", contains: "padding" }, signals: [...signals, { name: "width", init: width, on }] };
}

/** Legends with a name a line, which fit a phone. */
const inLines = ({ legends = [], ...vega }) => ({ ...vega, legends: legends.map((one) => ({ ...one, columns: 1 })) });

async function draw(section, spec) {
  const plot = section.querySelector(".chart");
  const own = { ...config, padding: 4 };
  const narrow = plot.clientWidth < NARROW;
  if (narrow) {
    own.axis = { ...config.axis, labelLimit: plot.clientWidth / 3 };
    own.legend = { ...config.legend, labelLimit: plot.clientWidth / 2 };
  }
  const embed = (shown, fit) => window.vegaEmbed(plot, shown, {
    ast: true, actions: false, logLevel: ERRORS, renderer: "svg", config: own, defaultStyle: false, bind: section.querySelector(".controls"),
    patch: (vega) => fit(narrow ? inLines(vega) : vega),
  });
  let { view } = spec.concat ? await embed(arranged(spec, plot.clientWidth, 0), (vega) => vega) : await embed(spec, fitted);
  if (spec.concat) {
    const excess = plot.querySelector("svg").getBoundingClientRect().width - plot.clientWidth;
    view.finalize();
    ({ view } = await embed(arranged(spec, plot.clientWidth, excess), (vega) => vega));
  }
  plot.querySelector("svg").setAttribute("aria-hidden", "true"); // the plot is an image, described by its sentence
  return view;
}

/** Panels in as many columns as there is room for; `excess` is by how many pixels they were too wide together. */
function arranged(spec, room, excess) {
  const columns = Math.max(1, Math.min(spec.columns, spec.concat.length, Math.floor(room / PANEL)));
  const width = Math.floor(room / columns - AXIS - excess / columns);
  const params = spec.params.map((one) => (one.name === "panel" ? { ...one, value: width } : one));
  return { ...spec, columns, params, concat: spec.concat.map((panel) => ({ ...panel, width })) };
}

function order(table, at, button) {
  const [body] = table.tBodies;
  const down = button.parentElement.ariaSort !== "descending";
  const value = (row) => row.cells[at].dataset.order ?? row.cells[at].textContent;
  const compare = (a, b) => (Number.isFinite(Number(a)) && Number.isFinite(Number(b)) ? a - b : a.localeCompare(b, "en", { numeric: true }));
  for (const { parentElement: heading } of table.querySelectorAll("th button")) heading.removeAttribute("aria-sort");
  button.parentElement.ariaSort = down ? "descending" : "ascending";
  body.append(...[...body.rows].sort((a, b) => (down ? compare(value(b), value(a)) : compare(value(a), value(b)))));
}

/** Marks, rows and options have the key of what they are of: a part's begins with that of the whole. */
let chosen = "";
const isPart = (key, whole) => `${key} `.startsWith(`${whole} `);
const isChosen = (key) => chosen !== "" && (isPart(key, chosen) || isPart(chosen, key));

/** The rows of a CSV file without line breaks in its texts. */
function rowsOf(text) {
  const [head, ...lines] = text.trim().split("\n").map((line) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)]
    .map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? (plain && Number.isFinite(Number(plain)) ? Number(plain) : plain)));
  return lines.map((line) => Object.fromEntries(head.map((name, at) => [name, line[at]])));
}

/** Chooses a key in all charts and tables; an empty one chooses nothing. */
function choose(key) {
  if (key === chosen) return;
  chosen = key;
  for (const row of document.querySelectorAll("tr[data-key]")) row.classList.toggle("chosen", isChosen(row.dataset.key));
  for (const scroller of document.querySelectorAll(".scroller.low:not(:hover)")) {
    const row = scroller.querySelector("tr.chosen");
    if (row) scroller.scrollTop = row.offsetTop - scroller.clientHeight / 2;
  }
  const found = {};
  for (const [id, view] of Object.entries(views)) {
    const { choices = {}, rows } = charts[id].usermeta ?? {};
    for (const [signal, texts] of Object.entries(choices)) {
      const option = texts ? texts[Object.keys(texts).find(isChosen)] : key || null;
      if (option !== undefined) view.signal(signal, option);
    }
    if (rows) {
      found[rows.chart] ??= rowsOf(csv[rows.chart]).filter((row) => `${row[rows.field]}` === key);
      view.data("chosen", found[rows.chart].map((row) => ({ ...row }))); // a chart adds fields of its own
    }
    view.run();
  }
  page.signal("chosen_key", key);
}

/** Chooses in all charts what is chosen in the controls of one, or by a click on a mark. */
function listen({ usermeta }, view) {
  if (!usermeta) return;
  view.addEventListener("click", (_, { datum } = {}) => { if (datum?.key) choose(datum.key === chosen ? "" : datum.key); });
  for (const [signal, texts] of Object.entries(usermeta.choices)) view.addSignalListener(signal, (_, value) => {
    const key = texts ? Object.keys(texts).find((one) => texts[one] === value) : value ?? "";
    if (key !== undefined && !isChosen(key)) setTimeout(choose, 0, key); // when the chart has been drawn
  });
}

function enliven(section, table) {
  for (const row of table.querySelectorAll("tr[data-key]")) {
    row.tabIndex = 0;
    const toggle = () => choose(row.dataset.key === chosen ? "" : row.dataset.key);
    row.addEventListener("click", toggle);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
  }
  [...table.tHead.rows[0].cells].forEach((heading, at) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "sort", textContent: heading.textContent });
    button.addEventListener("click", () => order(table, at, button));
    heading.replaceChildren(button);
  });
  if (!section.querySelector(".low")) return;
  const label = Object.assign(document.createElement("label"), { className: "control", textContent: "Search" });
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "part of a row" });
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of table.tBodies[0].rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
  label.append(field);
  section.querySelector(".controls").append(label);
}

async function start(section) {
  const { id } = section;
  const table = section.querySelector("table");
  if (table) enliven(section, table);
  if (id in charts) {
    views[id] = await draw(section, charts[id]);
    listen(charts[id], views[id]);
    if (charts[id].concat) window.addEventListener("resize", async () => {
      views[id].finalize();
      views[id] = await draw(section, charts[id]);
    });
  }
  const part = () => page.parts[id];
  const svg = () => svgOf(id in charts ? views[id] : { toSVG: async () => part().svg() });
  const exports = {
    CSV: () => download(`${id}.csv`, "text/csv", id in custom ? part().csv() : csv[id]),
    SVG: async () => download(`${id}.svg`, "image/svg+xml", await svg()),
    PNG: async () => download(`${id}.png`, "image/png", await pngOf(await svg())),
  };
  for (const button of section.querySelectorAll(".export button")) button.addEventListener("click", exports[button.textContent]);
}

document.getElementById("theme").addEventListener("input", ({ target }) => {
  if (target.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = target.value;
  for (const call of themed) call();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themed.forEach((call) => call()));
for (const name of ["beforeprint", "afterprint"]) window.addEventListener(name, () => themed.forEach((call) => call()));
await Promise.all([...document.querySelectorAll("#figures section")].map(start));
for (const [id, { module, data }] of Object.entries(custom)) {
  const [{ start: begin }, { unpacked }] = await Promise.all([import(`fairlane/${module}`), import("fairlane/kit")]);
  page.parts[id] = await begin(document.getElementById(id), await unpacked(data), page);
}
document.documentElement.dataset.ready = "yes";
