/** The change of each job between two runs. */

import { changesFigure } from "report/changes";
import { comparison } from "report/data";
import { jobNumber } from "report/run/data";
import { choose, opacity, subscribe } from "report/run/state";

export function startComparison() {
  if (!comparison) return;
  const made = changesFigure({
    note: "Throughput of this run against that of the other, over the iterations that both completed; of jobs without iterations, the mean message latency.",
    look: ({ name }) => ({ opacity: opacity(jobNumber.get(name)) }),
    click: ({ name }) => choose({ victim: [jobNumber.get(name)], aggressor: null }),
  });
  subscribe(["victim", "aggressor"], made.redraw);
}
