/** The panel beside the fabric: what is chosen there, and the links with the highest values. */

import { button, bytes, element, number, percent, rate, seconds } from "fairlane/kit";
import { choose, chosen, METRICS, rowsOf, subscribe } from "fairlane/state";

const MOST_LINKS = 10;
const MOST_PAIRS = 8;

const cells = (name, row) => element("tr", {}, ...row.map((cell) => element(name, {}, cell)));
const table = (head, rows) => element("table", {}, element("thead", {}, cells("th", head)), element("tbody", {}, ...rows.map((row) => cells("td", row))));
const facts = (rows) => element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", { textContent: name }), element("dd", {}, value)]));
const plain = (text, click) => button(text, click, { className: "plain" });
const heading = (level, textContent) => element(level, { textContent });
const note = (textContent) => element("p", { className: "note", textContent });
const more = (count, what) => (count > 0 ? [note(`and ${count} more ${what}`)] : []);

export function startDetails({ data, geometry, source, vertexName, linkName, jobsOf, show, form, hostCount, values }) {
  const { fabric, jobs, measured } = data;
  const { links } = fabric;
  const panel = document.getElementById("details");
  const top = document.getElementById("top-links");
  const linkButton = (link) => plain(linkName(link), () => {
    choose({ link, vertex: null });
    show({ link });
  });
  const vertexButton = (vertex) => plain(vertexName(vertex), () => choose({ link: null, vertex }));
  const jobButton = (job) => plain(jobs.name[job], () => choose({ victim: [job], aggressor: null, ...(data.by_jobs && { metric: "jobs" }) }));
  const pairButton = ({ victim, aggressor }) => plain(`${jobs.name[victim]} by ${jobs.name[aggressor]}`, () => choose({ victim: [victim], aggressor: [aggressor], metric: "jobs" }));

  function lanesOf(link) {
    const { lanes } = measured;
    return rowsOf(lanes.link, link).map((row) => [String(lanes.lane[row]), bytes(lanes.bytes[row]), number(lanes.packets[row]), number(lanes.queue[row]), percent(lanes.stalled[row]), String(lanes.max_queue[row])]);
  }

  function linkDetails(link) {
    const rows = [
      ["from", vertexButton(links.from[link])], ["to", vertexButton(links.to[link])],
      ["ports", `port ${links.from_port[link]} to port ${links.to_port[link]}`],
      ["role", `${fabric.roles[links.role[link]]} (${fabric.classes[links.class[link]]})`],
      ["bandwidth", rate(fabric.bandwidths[links.bandwidth[link]])],
    ];
    if (links.rail && links.rail[link] !== 255) rows.push(["rail", String(links.rail[link] + 1)]);
    if (measured) {
      rows.push(["utilisation", percent(measured.active[link])], ["stalled", percent(measured.stalled[link])]);
      rows.push(["queue", `${number(measured.queue[link])} packets`], ["transmitted", `${bytes(measured.bytes[link])}, ${number(measured.packets[link])} packets`]);
    }
    if (chosen.interval !== null || chosen.metric === "jobs" || chosen.difference) rows.push(["as coloured", form(values()[link])]);
    const lanes = measured ? lanesOf(link) : [];
    const pairs = source.pairsOf(link);
    return [
      heading("h3", linkName(link)), facts(rows),
      ...(lanes.length ? [heading("h4", "Virtual lanes"), table(["lane", "bytes", "packets", "queue", "stalled", "max"], lanes)] : []),
      ...(pairs.length ? [heading("h4", "Queueing delay by victim and aggressor"), table(["victim by aggressor", "delay"], pairs.slice(0, MOST_PAIRS).map((pair) => [pairButton(pair), seconds(pair.seconds)]))] : []),
      ...more(pairs.length - MOST_PAIRS, "pairs"),
    ];
  }

  const tableOfLinks = (every) => table(["link", METRICS[chosen.metric].label], every.map((link) => [linkButton(link), form(values()[link])]));
  const byValue = (every) => every.sort((a, b) => Math.abs(values()[b]) - Math.abs(values()[a]));

  function vertexDetails(vertex) {
    const every = byValue(geometry.linksOf(vertex));
    const here = jobsOf(vertex);
    const words = element("p", {}, vertex >= hostCount ? `Switch with ${every.length} links` : here.length ? "Host of " : "Host without a job", ...(vertex < hostCount ? here.map(jobButton) : []));
    return [heading("h3", vertexName(vertex)), words, tableOfLinks(every.slice(0, 2 * MOST_LINKS)), ...more(every.length - 2 * MOST_LINKS, "links")];
  }

  function drawDetails() {
    const { link, vertex } = chosen;
    const nothing = [note("Click a link, a host or a switch, or find it by name.")];
    panel.replaceChildren(...(link !== null ? linkDetails(link) : vertex !== null ? vertexDetails(vertex) : nothing));
  }

  function draw() {
    drawDetails();
    const order = byValue(Array.from({ length: geometry.linkCount }, (_, link) => link).filter((link) => values()[link] !== 0)).slice(0, MOST_LINKS);
    const title = chosen.difference ? "Links with the largest difference" : "Links with the highest values";
    top.replaceChildren(heading("h3", title), order.length ? tableOfLinks(order) : note("No link has any."));
  }
  draw();
  subscribe(["link", "vertex"], drawDetails);
  subscribe(["metric", "victim", "aggressor", "interval", "difference"], draw);
}
