/** The plausible space: what the paper leaves open, with ranges and sources. */

import { tableCard } from "report/table";

const COLUMNS = { name: "parameter", title: "meaning", range: "range", default: "default", source: "source" };

export function startParameters({ parameters }) {
  tableCard({
    id: "parameters", wide: true, title: "Plausible space", sentence: `${parameters.length} parameters that the paper leaves open.`, rows: () => parameters,
    columns: Object.entries(COLUMNS).map(([name, title]) => ({ title, value: (row) => row[name] })),
    csv: () => [Object.values(COLUMNS), ...parameters.map((row) => Object.keys(COLUMNS).map((name) => row[name]))],
  });
}
