/** Fills the page: heading, fabric, figures, provenance. */

import { element } from "report/chart";
import { startComparison } from "report/compare";
import { startControls } from "report/controls";
import { comparison, data, jobs } from "report/data";
import { startDetails } from "report/details";
import { startFabric } from "report/fabric";
import { number, seconds } from "report/format";
import { startJobs } from "report/jobs";
import { startMatrix } from "report/matrix";
import { setTheme } from "report/theme";

function heading() {
  const { meta } = data;
  document.getElementById("scenario").textContent = meta.scenario;
  const parts = [`${number(jobs.name.length)} jobs`, `${number(data.fabric.hosts.length)} hosts`, `${seconds(meta.simulated_s)} simulated`, `seed ${meta.seed}`];
  if (meta.partial) parts.push("partial: interrupted");
  if (comparison) parts.push(`compared with ${comparison.meta.name}`);
  document.getElementById("what").textContent = parts.join(" · ");
  document.getElementById("notes").append(...meta.notes.map((note) => element("li", { textContent: note })));
  document.getElementById("fabric-sentence").textContent = data.sentences.fabric ?? "No port transmitted anything, or the run did not count it (observe.counters = false).";
}

function provenance({ name, scenario, seed, version, digest, started }) {
  const rows = [["run", name], ["scenario", scenario], ["seed", seed], ["fairlane", version], ["started", started], ["digest of the results", digest]];
  return element("dl", {}, ...rows.flatMap(([term, value]) => [element("dt", { textContent: term }), element("dd", { textContent: value })]));
}

heading();
document.getElementById("theme").addEventListener("change", (event) => setTheme(event.target.value));
startFabric();
startControls();
startDetails();
startComparison();
startMatrix();
startJobs();
document.getElementById("provenance").append(provenance(data.meta), ...(comparison ? [element("p", { textContent: "Compared with:" }), provenance(comparison.meta)] : []));
document.documentElement.dataset.ready = "yes";
