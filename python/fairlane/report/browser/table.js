/** A table: a card with rows that can be sorted and filtered, and its export as CSV. */

import { card, csvButton, element, labelled } from "report/card";

const MOST_ROWS = 200; // rows that are shown at a time; the CSV has all

/**
 * Adds a table to the page.
 *
 * @param {object} given What `card` takes, `columns` with `title`, `value(row)`, and if wanted `text(row)` (text or an
 *   element) and `number` (whether it stands at the right); `rows()`; `csv()`; and if wanted `filter`, the label of a
 *   field that searches in all columns: such tables scroll.
 * @returns {{redraw: function(): void}} What draws it anew.
 */
export function tableCard(given) {
  const field = element("input", { type: "search", id: `${given.id}-filter`, placeholder: "part of a row" });
  const controls = [...(given.controls ?? []), ...(given.filter ? [labelled(given.filter, field)] : [])];
  const { body, exporting, section } = card({ ...given, controls });
  if (given.filter) body.classList.add("low");
  const rest = element("p", { className: "note" });
  let order = null; // number of the column by which rows are sorted, and whether from the largest
  const textOf = (column, row) => (column.text ? column.text(row) : column.value(row) ?? "–");

  function shown() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = given.rows().filter((row) => {
      const all = given.columns.map((column) => { const cell = textOf(column, row); return cell.textContent ?? cell; }).join(" ").toLowerCase();
      return words.every((word) => all.includes(word));
    });
    if (!order) return found;
    const { value } = given.columns[order.column];
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true }));
    return [...found].sort((a, b) => (order.down ? compare(value(b), value(a)) : compare(value(a), value(b))));
  }

  function heading(column, at) {
    const sorted = order?.column === at;
    const button = element("button", { type: "button", className: "sort", textContent: `${column.title}${sorted ? (order.down ? " ▼" : " ▲") : ""}`, onclick: () => {
      order = { column: at, down: sorted ? !order.down : Boolean(column.number) };
      redraw();
      section.querySelectorAll("th button")[at].focus();
    } });
    const made = element("th", { className: column.number ? "number" : "", scope: "col" }, button);
    if (sorted) made.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    return made;
  }

  function redraw() {
    const rows = shown();
    const cell = (column, row) => element("td", { className: column.number ? "number" : "" }, textOf(column, row));
    const lines = rows.slice(0, MOST_ROWS).map((row) => element("tr", {}, ...given.columns.map((column) => cell(column, row))));
    body.replaceChildren(element("table", { className: "rows" }, element("thead", {}, element("tr", {}, ...given.columns.map(heading))), element("tbody", {}, ...lines)));
    rest.textContent = rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${rows.length.toLocaleString("en-US")} rows; the CSV has all.` : "";
  }
  body.after(rest);
  field.addEventListener("input", redraw);
  csvButton(exporting, given);
  redraw();
  return { redraw, section };
}
