/** The claims with what was measured and their verdicts. */

import { element, labelled, selection } from "report/card";
import { comparison, data } from "report/data";
import { number } from "report/format";
import { choose } from "report/reproduction/state";
import { tableCard } from "report/table";

const MARKS = { holds: "✓", "holds under stated conditions": "✓", "does not hold": "✗", contradicted: "✗", undecided: "?", calibrated: "◦", scaled: "◐", "not run": "–" };

const MOST_NUMBERS = 4; // of a claim that are shown at once

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** The values of a number over replicates: median and range. */
export function spreadOf({ values }) {
  const known = values.filter((value) => value !== null);
  if (!known.length) return "–";
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return low === high ? number(low) : `${number(median(known))} (${number(low)} to ${number(high)})`;
}
export const heldOf = ({ holds }) => `${holds.filter(Boolean).length} of ${holds.length}`;

function measured(claim) {
  const items = claim.clauses.flatMap((clause) => clause.numbers.map((one) => element("li", { textContent: `${one.label}: ${spreadOf(one)}, band ${one.band}, in the band ${heldOf(one)}${one.reported ? `; paper: ${one.reported}` : ""}${clause.verdict === claim.verdict ? "" : `; ${clause.explained}`}` })));
  const missing = claim.missing.map((words) => element("li", { textContent: `missing: ${words}` }));
  const list = (of) => element("ul", { className: "measured" }, ...of);
  if (items.length <= MOST_NUMBERS) return list([...items, ...missing]);
  const rest = element("details", {}, element("summary", { textContent: `${items.length - MOST_NUMBERS} more` }), list(items.slice(MOST_NUMBERS)));
  return element("div", {}, list([...items.slice(0, MOST_NUMBERS), ...missing]), rest);
}

export function verdictMark(verdict, words = verdict) {
  const made = element("span", { className: "verdict" }, element("span", { className: "mark", textContent: MARKS[verdict] ?? "" }), ` ${words}`);
  made.dataset.verdict = verdict;
  return made;
}

export function startClaims() {
  const others = new Map((comparison?.claims ?? []).map((claim) => [claim.id, claim]));
  const used = data.order.filter((verdict) => data.claims.some((claim) => claim.verdict === verdict));
  const verdict = selection("claims-verdict", [["", "all"], ...used.map((one) => [one, one])], () => made.redraw());
  const show = (claim) => element("button", { type: "button", className: "plain", textContent: claim.id, onclick: () => {
    choose({ claim: claim.id });
    document.getElementById("numbers")?.scrollIntoView({ block: "start" });
  } });
  const names = ["claim", "where", "paper", "verdict", "replicates", "missing"];
  const made = tableCard({
    id: "claims", wide: true, title: "Claims", controls: [labelled("Verdict", verdict)],
    sentence: comparison ? `${data.sentences.claims} ${comparison.sentence}` : data.sentences.claims,
    note: "A clause holds if its numbers are in their bands in at least 90% of the replicates, does not hold at 10% or fewer, and is undecided between. Calibrated: an input was chosen by the number. Click a claim for its numbers.",
    rows: () => data.claims.filter((claim) => !verdict.value || claim.verdict === verdict.value),
    columns: [
      { title: "claim", value: (claim) => claim.id, text: (claim) => element("div", {}, show(claim), element("div", { className: "note", textContent: claim.where })) },
      { title: "the paper reports", value: (claim) => claim.paper },
      { title: "measured: median (range)", value: (claim) => claim.clauses.length, text: measured },
      { title: "verdict", value: (claim) => data.order.indexOf(claim.verdict), text: (claim) => verdictMark(claim.verdict, claim.words) },
      ...(comparison ? [{ title: comparison.meta.name, value: (claim) => others.get(claim.id)?.verdict, text: (claim) => (others.has(claim.id) ? verdictMark(others.get(claim.id).verdict) : "–") }] : []),
    ],
    csv: () => [names, ...data.claims.map((claim) => [claim.id, claim.where, claim.paper, claim.verdict, Math.max(0, ...claim.clauses.flatMap(({ numbers }) => numbers.map(({ values }) => values.length))), claim.missing.join("; ")])],
  });
}
