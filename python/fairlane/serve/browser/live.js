/** A run in progress: how far it is, how fast, what it has measured; it can be stopped from here. */

import { element, number, percent, seconds } from "../fairlane/kit.js";
import { given, load, repeat, trouble } from "./http.js";

const EVERY_MS = 1000;
const [status, bar, facts, stop, report, dialog] = ["status", "progress", "facts", "stop", "report", "confirm"].map((id) => document.getElementById(id));
let asked = false;

/** Wall time in words: 42 s, 3 min 20 s, 5 h 12 min. */
function wallTime(value) {
  if (value === null) return "–";
  const whole = Math.round(value);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours) return `${number(hours)} h ${minutes} min`;
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

const millions = (value) => (value === null ? "–" : `${(value / 1e6).toFixed(2)} million`);

function heading({ scenario, seed, started, version, jobs, machine, pid }) {
  document.querySelector("h1").textContent = scenario;
  const begun = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" }).format(new Date(started));
  const parts = [given.name, `${number(jobs.name.length)} jobs`, `seed ${seed}`, `started ${begun}`, `process ${pid} on ${machine}`, `fairlane ${version}`];
  document.getElementById("what").textContent = parts.join(" · ");
}

function progress(now) {
  bar.value = now.share;
  bar.textContent = percent(now.share);
  const mean = now.elapsed_s > 0 ? now.packet_hops / now.elapsed_s : null;
  const shown = [
    ["done", percent(now.share)],
    ["simulated", `${seconds(now.simulated_s)} of ${seconds(now.duration_s)}`],
    ["time left", now.left_s === null ? "–" : `about ${wallTime(now.left_s >= 300 ? 60 * Math.round(now.left_s / 60) : now.left_s).replace(" 0 s", "")}`],
    ["time so far", wallTime(now.elapsed_s)],
    ["packet-hops/s now", millions(now.hops_per_s)],
    ["packet-hops/s, mean", millions(mean)],
    ["packet-hops", number(now.packet_hops)],
    ...(now.isolated ? [["isolated runs done", `${now.isolated_done} of ${now.isolated}`]] : []),
  ];
  facts.replaceChildren(...shown.map(([term, value]) => element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: value }))));
}

/** Whether the pointer is on a figure: it stands still then, so that its tooltip stays. */
const looked = (card) => window.matchMedia("(hover: hover)").matches && card.matches(":hover");

/** Shows new rows of charts and tables; those without any are hidden. */
function figures({ charts, csv, tables, sentences }) {
  let appeared = false;
  for (const [id, sentence] of Object.entries(sentences)) {
    const card = document.getElementById(id);
    const rows = charts[id] ?? tables[id];
    appeared ||= card.hidden && rows.length > 0;
    card.hidden = !rows.length;
    if (!rows.length || looked(card)) continue;
    card.querySelector(".sentence").textContent = sentence;
    if (id in tables) card.querySelector("tbody").innerHTML = rows;
    else {
      window.fairlane.views[id].data("rows", rows).resize().runAsync();
      window.fairlane.csv[id] = csv[id];
    }
  }
  if (appeared) window.dispatchEvent(new Event("resize")); // charts are as wide as their cards
}

const WORDS = {
  "in progress": "The run is simulated.",
  killed: "The process of the run has ended without storing results: it was killed, or the machine was switched off. This is the last state that it wrote.",
  failed: "The run has failed, and there are no results.",
};

function tell(found) {
  const storing = found.state?.phase === "storing";
  const words = found.status !== "in progress" ? WORDS[found.status] : storing ? "The simulations are over; the results are being stored." : asked ? "The run has been asked to stop." : WORDS["in progress"];
  const text = found.status === "failed" && found.note ? `${words} ${found.note}` : words ?? found.note ?? found.status;
  if (status.textContent !== text) status.textContent = text;
  stop.hidden = found.status !== "in progress" || storing;
  stop.disabled = asked;
}

function ended(found) {
  status.textContent = found.status === "partial" ? "The run was interrupted; what it had measured is stored." : found.status === "finished" ? "The run has finished." : found.note ?? found.status;
  if (found.status === "finished") {
    bar.value = 1;
    bar.textContent = "100%";
  }
  stop.hidden = true;
  if (dialog.open) dialog.close();
  report.hidden = !found.report;
  if (found.report) report.href = found.report;
}

async function update() {
  let found;
  try {
    found = await load(`/api/live/${given.path}`);
    trouble(null);
  } catch (error) {
    trouble(error.status === 404 ? "The run has ended without results, or its folder was removed." : error.message);
    stop.hidden = error.status === 404;
    return !(error.status === 403 || error.status === 404);
  }
  if (found.state) {
    heading(found.state);
    progress(found.state.progress);
    figures(found.figures);
    tell(found);
  } else ended(found);
  document.documentElement.dataset.status = found.status;
  return found.status === "in progress";
}

async function askToStop() {
  dialog.close();
  try {
    await load(`/api/stop/${given.path}`, { method: "POST", headers: { [given.header]: given.action } });
    asked = true;
    stop.disabled = true;
    status.textContent = "The run has been asked to stop.";
  } catch (error) {
    trouble(error.message);
  }
}

stop.addEventListener("click", () => dialog.showModal());
document.getElementById("confirm-back").addEventListener("click", () => dialog.close());
document.getElementById("confirm-stop").addEventListener("click", askToStop);
while (document.documentElement.dataset.ready !== "yes") await new Promise((done) => setTimeout(done, 50)); // charts are drawn
repeat(update, EVERY_MS);
