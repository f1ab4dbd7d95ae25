/** Errors of the model of slowdowns on simulated snapshots of the schedules. */

import { data } from "report/data";
import { number, percent } from "report/format";
import { tableCard } from "report/table";

export function startVerified() {
  const rows = data.verified;
  if (!rows.length) return;
  const share = (title, name, signed = false) => ({ title, number: true, value: (row) => row[name], text: (row) => percent(row[name] ?? null, signed) });
  const known = rows.filter((row) => row.mean_error !== undefined).sort((a, b) => b.mean_error - a.mean_error);
  tableCard({
    id: "verified", wide: true, title: "Model of slowdowns against simulation", rows: () => rows,
    sentence: known.length ? `The mean error of predicted slowdowns is at most ${percent(known[0].mean_error)} (${known[0].allocator}); ${percent(known[0].baseline_error)} without a model.` : "No snapshot had a job with neighbours.",
    note: "Snapshots of the schedules, simulated packet by packet. Bias: mean error with its sign.",
    columns: [{ title: "allocator", value: (row) => row.allocator }, { title: "snapshots", number: true, value: (row) => row.snapshots, text: (row) => number(row.snapshots) }, { title: "jobs", number: true, value: (row) => row.count, text: (row) => number(row.count ?? 0) }, share("mean error", "mean_error"), share("90th percentile", "p90_error"), share("bias", "bias", true), share("without a model", "baseline_error")],
    csv: () => [["allocator", "snapshots", "jobs", "mean_error", "p90_error", "bias", "baseline_error"], ...rows.map((row) => [row.allocator, row.snapshots, row.count, row.mean_error, row.p90_error, row.bias, row.baseline_error])],
  });
}
