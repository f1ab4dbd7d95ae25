/** The cards of a study: effects of its treatments, by job, by cell, by parameter, and how certain they are. */

import { changesFigure } from "report/changes";
import { comparison, data } from "report/data";
import { startCells } from "report/study/cells";
import { startDesign } from "report/study/design";
import { startEffects } from "report/study/effects";
import { startExtremes } from "report/study/extremes";
import { startMeasured } from "report/study/measured";
import { startPeriods } from "report/study/periods";
import { startReplicates } from "report/study/replicates";
import { startSweeps } from "report/study/sweeps";
import { tableCard } from "report/table";

function startComparison() {
  if (comparison) changesFigure({ wide: true, note: "Throughput of this study's jobs against those of the other, over the placements and seeds that both have." });
}

function startFailures() {
  const { failures } = data;
  if (!failures) return;
  const names = ["point", "placement", "seed", "treatment", "job", "error", "scenario"];
  const rows = failures.columns.point.map((_, at) => Object.fromEntries(names.map((name) => [name, failures.columns[name][at]])));
  tableCard({
    id: "failures", wide: true, title: "Runs that failed", sentence: `${rows.length} runs failed twice; fairlane run accepts their scenarios.`,
    columns: names.map((name) => ({ title: name, value: (row) => row[name] })), rows: () => rows,
    csv: () => [names, ...rows.map((row) => names.map((name) => row[name]))],
  });
}

export function start() {
  if (data.effects) for (const one of [startEffects, startComparison, startExtremes, startReplicates, startCells, startSweeps, startPeriods, startDesign]) one();
  startMeasured();
  startFailures();
}
