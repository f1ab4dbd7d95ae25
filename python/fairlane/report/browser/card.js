/** Cards, which a page is made of: heading, sentence, controls, what is shown, and how it is exported. */

/** An element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A labelled control. */
export const labelled = (text, control) => element("label", { className: "control" }, element("span", { textContent: text }), control);

/** A selection of [value, text] pairs; `change` is called with nothing when another is chosen. */
export function selection(id, options, change = () => {}) {
  const made = element("select", { id });
  made.append(...options.map(([value, text]) => element("option", { value, textContent: text })));
  made.addEventListener("input", () => change());
  return made;
}

/**
 * Adds an empty card to the page.
 *
 * @param {object} given `id`, `title`, `sentence`, and if wanted `controls` (elements), `note`, `wide` (over all
 *   columns), and `into`, the element to add it to.
 * @returns {{section: Element, body: Element, exporting: Element, sentence: Element}} The card, the element for what it
 *   shows (which scrolls sideways), the one for its buttons, and its sentence.
 */
export function card(given) {
  const sentence = element("p", { className: "sentence", id: `${given.id}-sentence`, textContent: given.sentence ?? "" });
  const heading = element("h2", { textContent: given.title, id: `${given.id}-title` });
  const section = element("section", { className: given.wide ? "card wide" : "card", id: given.id }, heading, sentence);
  section.setAttribute("aria-labelledby", heading.id);
  if (given.controls?.length) section.append(element("div", { className: "controls" }, ...given.controls));
  const body = element("div", { className: "scroller", tabIndex: 0 });
  body.setAttribute("role", "group");
  body.setAttribute("aria-label", given.title);
  section.append(body);
  if (given.note) section.append(element("p", { className: "note", textContent: given.note }));
  const exporting = element("div", { className: "export" });
  section.append(exporting);
  (given.into ?? document.getElementById("figures")).append(section);
  return { section, body, exporting, sentence };
}

/** Adds a button that exports a card in a format. */
export function exportButton(into, title, kind, call) {
  const made = element("button", { type: "button", textContent: kind, onclick: call });
  made.setAttribute("aria-label", `${title} as ${kind}`);
  into.append(made);
}

export function download(name, type, content) {
  const url = content.startsWith("data:") ? content : URL.createObjectURL(new Blob([content], { type }));
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

/** Rows as CSV (RFC 4180). */
export function csvOf(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** Adds the button that exports rows as CSV; `rows()` has the names of columns first. */
export const csvButton = (into, { id, title, csv }) =>
  exportButton(into, title, "CSV", () => download(`${id}.csv`, "text/csv", csvOf(csv())));
