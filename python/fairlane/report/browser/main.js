/** Fills the page: heading, the cards of its kind, provenance. */

import { element } from "report/card";
import { comparison, data } from "report/data";
import { setTheme } from "report/theme";

function heading() {
  const { title, facts, notes } = data.meta;
  document.getElementById("scenario").textContent = title;
  const parts = comparison ? [...facts, `compared with ${comparison.meta.name}`] : facts;
  document.getElementById("what").textContent = parts.join(" · ");
  document.getElementById("notes").append(...notes.map((note) => element("li", { textContent: note })));
}

const provenance = ({ provenance: rows }) =>
  element("dl", {}, ...rows.flatMap(([term, value]) => [element("dt", { textContent: term }), element("dd", { textContent: value })]));

/** Fills the page. `start` adds the cards of its kind. */
export function begin(start) {
  heading();
  document.getElementById("theme").addEventListener("change", (event) => setTheme(event.target.value));
  start();
  const other = comparison ? [element("p", { textContent: "Compared with:" }), provenance(comparison.meta)] : [];
  document.getElementById("provenance").append(provenance(data.meta), ...other);
  document.documentElement.dataset.ready = "yes";
}
