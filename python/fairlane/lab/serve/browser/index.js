/** The list of results: filtered, kept up to date, and two of one kind compared. */

import { element, number, percent } from "../fairlane/kit.js";
import { given, load, repeat, trouble } from "./http.js";

const EVERY_MS = 3000;
const [find, kind, button, note] = ["find", "kind", "compare", "compare-note"].map((id) => document.getElementById(id));
const body = document.querySelector("#results tbody");
const when = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
let entries = [];
let truncated = false;
let chosen = []; // paths of results of one kind to compare, at most two
let before = ""; // what is shown, so that nothing is drawn anew that has not changed

const date = ({ started }) => (started ? when.format(new Date(started)) : "–");

function compareWith(path, wanted) {
  const kindOf = (one) => entries.find((entry) => entry.path === one)?.kind;
  chosen = chosen.filter((one) => one !== path && kindOf(one) === kindOf(path));
  if (wanted) chosen = [...chosen.slice(-1), path];
  show();
}

function box({ path, name, comparable }) {
  if (!comparable) return "";
  return element("input", { type: "checkbox", value: path, ariaLabel: `Compare ${name}`, checked: chosen.includes(path), onchange: ({ target }) => compareWith(path, target.checked) });
}

function state({ status, note: words, share, kind: of, page }) {
  const mark = element("span", { className: "mark" });
  mark.dataset.status = status;
  const text = share !== null && status === "in progress" ? `${status}, ${percent(share)}` : status;
  const cell = element("td", { className: "state" }, mark, text);
  const note = (textContent) => element("span", { className: "note", textContent });
  if (share !== null && status === "in progress") cell.append(element("progress", { max: 1, value: share, ariaLabel: "progress" }));
  if (words) cell.append(note(words));
  if (!page && (status === "finished" || status === "partial")) cell.append(note(`no page for the kind ${of}`));
  return cell;
}

function row(entry) {
  const { name, page, kind: of, scenario, seed, digest } = entry;
  const link = page ? element("a", { href: page, textContent: name }) : name;
  const facts = [of, scenario, seed === null ? null : `seed ${seed}`, date(entry)].filter((one) => one).join(" · ");
  const cell = (className, content) => element("td", { className }, content);
  return element("tr", {},
    cell("", box(entry)), element("td", { className: "folder" }, link, element("span", { className: "note narrow", textContent: facts })),
    cell("extra", of), cell("extra", scenario ?? "–"), cell("extra", seed === null ? "–" : String(seed)), cell("extra", date(entry)),
    element("td", { className: "extra digest", textContent: digest ? digest.slice(0, 12) : "–", title: digest ?? "" }), state(entry));
}

function kinds() {
  const found = [...new Set(entries.map((entry) => entry.kind))].sort();
  if (found.join() === [...kind.options].slice(1).map((one) => one.value).join()) return;
  const value = kind.value;
  kind.replaceChildren(...["", ...found].map((one) => element("option", { value: one, textContent: one || "all" })));
  kind.value = found.includes(value) ? value : "";
}

/** The two that are chosen, the earlier first; null if there are not two. */
function pair() {
  const found = chosen.map((path) => entries.find((entry) => entry.path === path)).filter(Boolean);
  return found.length === 2 ? found.sort((a, b) => (a.started ?? "").localeCompare(b.started ?? "") || a.path.localeCompare(b.path)) : null;
}

function show() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = entries.filter((entry) => (!kind.value || entry.kind === kind.value) && words.every((word) => `${entry.name} ${entry.scenario ?? ""}`.toLowerCase().includes(word)));
  chosen = chosen.filter((path) => entries.some((entry) => entry.path === path && entry.comparable));
  const now = JSON.stringify([wanted, chosen]);
  if (now !== before) {
    before = now;
    const focused = body.contains(document.activeElement) ? document.activeElement.value : null;
    body.replaceChildren(...wanted.map(row));
    [...body.querySelectorAll("input")].find((one) => one.value === focused)?.focus();
  }
  const running = entries.filter((entry) => entry.status === "in progress").length;
  const count = entries.length === 1 ? "1 folder of results" : `${number(entries.length)} folders of results`;
  document.getElementById("what").textContent = `${count}${running ? ` · ${running} in progress` : ""}${truncated ? " · more folders than are looked at" : ""}`;
  const none = document.getElementById("none");
  none.hidden = wanted.length > 0;
  none.textContent = entries.length ? "Nothing matches." : "There are no results in this folder. fairlane run SCENARIO --out FOLDER/NAME stores a run in it; this list shows it while it is simulated.";
  document.getElementById("results-scroller").hidden = !wanted.length;
  const two = pair();
  button.disabled = !two;
  note.textContent = two ? `${two[1].name}, with its differences to ${two[0].name}` : "Select two of one kind.";
}

async function update() {
  try {
    ({ entries, truncated } = await load("/api/results"));
    trouble(null);
    kinds();
    show();
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    trouble(error.message);
    if (error.status === 403) return false;
  }
  return true;
}

document.getElementById("title").textContent = given.title;
document.getElementById("theme").addEventListener("change", ({ target }) => {
  if (target.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = target.value;
});
for (const control of [find, kind]) control.addEventListener("input", show);
button.addEventListener("click", () => {
  const [earlier, later] = pair();
  window.location.assign(`${later.page}?compare=${encodeURIComponent(earlier.path)}`);
});
repeat(update, EVERY_MS);
