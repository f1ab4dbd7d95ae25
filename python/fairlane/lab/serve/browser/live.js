/** A run in progress: how far it is, how fast, what it has measured; it can be stopped from here. */

import { element, percent } from "../fairlane/kit.js";
import { given, load, repeat, trouble } from "./http.js";

const EVERY_MS = 1000;
const ASKED = "The run has been asked to stop.";
const [status, bar, facts, stop, report, dialog] = ["status", "progress", "facts", "stop", "report", "confirm"].map((id) => document.getElementById(id));
let asked = false;

function progress({ share }, terms) {
  bar.value = share;
  bar.textContent = percent(share);
  facts.replaceChildren(...Object.entries(terms).map(([term, value]) => element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: value }))));
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

/** Shows what the status means, and what can be done. */
function tell({ status: now, words, report: page, state }) {
  const running = now === "in progress" && state?.phase !== "storing";
  const text = running && asked ? ASKED : words;
  if (status.textContent !== text) status.textContent = text;
  stop.hidden = !running;
  stop.disabled = asked;
  report.hidden = !page;
  if (page) report.href = page;
  if (!state && dialog.open) dialog.close();
  if (now === "finished") bar.value = 1;
  document.documentElement.dataset.status = now;
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
    progress(found.state.progress, found.figures.facts);
    figures(found.figures);
  }
  tell(found);
  return found.status === "in progress";
}

async function askToStop() {
  dialog.close();
  try {
    await load(`/api/stop/${given.path}`, { method: "POST", headers: { [given.header]: given.action } });
    asked = true;
    stop.disabled = true;
    status.textContent = ASKED;
  } catch (error) {
    trouble(error.message);
  }
}

stop.addEventListener("click", () => dialog.showModal());
document.getElementById("confirm-back").addEventListener("click", () => dialog.close());
document.getElementById("confirm-stop").addEventListener("click", askToStop);
while (document.documentElement.dataset.ready !== "yes") await new Promise((done) => setTimeout(done, 50)); // charts are drawn
repeat(update, EVERY_MS);
