/** The panel beside the fabric: what is chosen there, and the links with the highest values. */

import { element } from "report/card";
import { data } from "report/data";
import { bytes, number, percent, rate, seconds } from "report/format";
import { fabric, jobs, jobsOfHost, linkCount, linkName, links, vertexName } from "report/run/data";
import { currentValues, show } from "report/run/fabric";
import { isHost, linksOf } from "report/run/geometry";
import { choose, chosen, subscribe } from "report/run/state";
import { METRICS, pairsOf } from "report/run/values";

const MOST_LINKS = 10;
const MOST_PAIRS = 8;
const panel = document.getElementById("details");
const top = document.getElementById("top-links");

const cells = (name, row) => element("tr", {}, ...row.map((cell) => {
  const made = element(name);
  made.append(cell);
  return made;
}));
const table = (head, rows) => element("table", {}, element("thead", {}, cells("th", head)), element("tbody", {}, ...rows.map((row) => cells("td", row))));
const facts = (rows) => element("dl", {}, ...rows.flatMap(([name, value]) => {
  const made = element("dd");
  made.append(value);
  return [element("dt", { textContent: name }), made];
}));
const button = (text, click) => element("button", { type: "button", className: "plain", textContent: text, onclick: click });
const linkButton = (link) => button(linkName(link), () => {
  choose({ link, vertex: null });
  show({ link });
});
const vertexButton = (vertex) => button(vertexName(vertex), () => choose({ link: null, vertex }));
const jobButton = (job) => button(jobs.name[job], () => choose({ victim: [job], aggressor: null, metric: data.by_jobs ? "jobs" : chosen.metric }));
const pairButton = ({ victim, aggressor }) => button(`${jobs.name[victim]} by ${jobs.name[aggressor]}`, () =>
  choose({ victim: [victim], aggressor: [aggressor], metric: "jobs" }));

function linkDetails(link) {
  const { measured } = data;
  const ends = `port ${links.from_port[link]} to port ${links.to_port[link]}`;
  const rows = [
    ["from", vertexButton(links.from[link])], ["to", vertexButton(links.to[link])], ["ports", ends],
    ["role", `${fabric.roles[links.role[link]]} (${fabric.classes[links.class[link]]})`],
    ["bandwidth", rate(fabric.bandwidths[links.bandwidth[link]])],
  ];
  if (measured) {
    rows.push(["utilisation", percent(measured.active[link])], ["stalled", percent(measured.stalled[link])]);
    rows.push(["queue", `${number(measured.queue[link])} packets`], ["transmitted", `${bytes(measured.bytes[link])}, ${number(measured.packets[link])} packets`]);
  }
  if (chosen.interval !== null || chosen.metric === "jobs" || chosen.difference) {
    rows.push(["as coloured", METRICS[chosen.metric].form(currentValues()[link])]);
  }
  const found = [element("h3", { textContent: linkName(link) }), facts(rows)];
  const lanes = measured ? lanesOf(link) : [];
  if (lanes.length) found.push(element("h4", { textContent: "Virtual lanes" }), table(["lane", "bytes", "packets", "queue", "stalled", "max"], lanes));
  const pairs = pairsOf(link);
  if (pairs.length) {
    found.push(element("h4", { textContent: "Queueing delay by victim and aggressor" }));
    found.push(table(["victim by aggressor", "delay"], pairs.slice(0, MOST_PAIRS).map((pair) => [pairButton(pair), seconds(pair.seconds)])));
    if (pairs.length > MOST_PAIRS) found.push(element("p", { className: "note", textContent: `and ${pairs.length - MOST_PAIRS} more pairs` }));
  }
  return found;
}

function lanesOf(link) {
  const { lanes } = data.measured;
  const found = [];
  for (let row = lanes.link.indexOf(link); row >= 0 && lanes.link[row] === link; row += 1) {
    found.push([String(lanes.lane[row]), bytes(lanes.bytes[row]), number(lanes.packets[row]), number(lanes.queue[row]), percent(lanes.stalled[row]), String(lanes.max_queue[row])]);
  }
  return found;
}

function vertexDetails(vertex) {
  const values = currentValues();
  const { form } = METRICS[chosen.metric];
  const every = linksOf(vertex).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  const found = [element("h3", { textContent: vertexName(vertex) })];
  if (isHost(vertex)) {
    const here = jobsOfHost.get(vertex) ?? [];
    found.push(element("p", {}, here.length ? "Host of " : "Host without a job", ...here.map(jobButton)));
  } else found.push(element("p", { textContent: `Switch with ${every.length} links` }));
  found.push(table(["link", METRICS[chosen.metric].short], every.slice(0, 2 * MOST_LINKS).map((link) => [linkButton(link), form(values[link])])));
  if (every.length > 2 * MOST_LINKS) found.push(element("p", { className: "note", textContent: `and ${every.length - 2 * MOST_LINKS} more links` }));
  return found;
}

function drawDetails() {
  const { link, vertex } = chosen;
  if (link !== null) panel.replaceChildren(...linkDetails(link));
  else if (vertex !== null) panel.replaceChildren(...vertexDetails(vertex));
  else panel.replaceChildren(element("p", { className: "note", textContent: "Click a link, a host or a switch, or find it by name." }));
}

function drawTop() {
  const values = currentValues();
  const { form, short } = METRICS[chosen.metric];
  const order = Array.from({ length: linkCount }, (_, link) => link).filter((link) => values[link] !== 0);
  order.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  top.replaceChildren(
    element("h3", { textContent: chosen.difference ? "Links with the largest difference" : "Links with the highest values" }),
    order.length ? table(["link", short], order.slice(0, MOST_LINKS).map((link) => [linkButton(link), form(values[link])])) : element("p", { className: "note", textContent: "No link has any." }),
  );
}

export function startDetails() {
  const both = () => {
    drawDetails();
    drawTop();
  };
  both();
  subscribe(["link", "vertex"], drawDetails);
  subscribe(["metric", "victim", "aggressor", "interval", "difference"], both);
}
