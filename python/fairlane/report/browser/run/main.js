/** The cards of a run: its fabric, who delays whom, what the jobs measured. */

import { data } from "report/data";
import { startComparison } from "report/run/compare";
import { startControls } from "report/run/controls";
import { startDetails } from "report/run/details";
import { startFabric } from "report/run/fabric";
import { startJobs } from "report/run/jobs";
import { startLost } from "report/run/lost";
import { startMatrix } from "report/run/matrix";

export function start() {
  document.getElementById("fabric-sentence").textContent = data.sentences.fabric ?? "No port transmitted anything, or the run did not count it (observe.counters = false).";
  for (const one of [startFabric, startControls, startDetails, startComparison, startLost, startMatrix, startJobs]) one();
}
