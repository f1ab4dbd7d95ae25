/** The cards of a reproduction: claims, their numbers, figures, the robustness map, simulations. */

import { data } from "report/data";
import { startCells } from "report/reproduction/cells";
import { startClaims } from "report/reproduction/claims";
import { startFigures } from "report/reproduction/figures";
import { startNumbers } from "report/reproduction/numbers";
import { startMap } from "report/robustness/map";

export function start() {
  for (const one of [startClaims, startNumbers, startFigures]) one();
  if (data.map) startMap(data.map);
  startCells();
}
