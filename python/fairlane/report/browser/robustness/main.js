/** The cards of a robustness map. */

import { comparison, data } from "report/data";
import { startMap } from "report/robustness/map";

export function start() {
  startMap(data.map, comparison?.map);
}
