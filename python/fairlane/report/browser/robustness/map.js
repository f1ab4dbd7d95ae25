/** A robustness map: shares at which clauses hold, what decides them, parameters. */

import { startIndices } from "report/robustness/indices";
import { startLevels } from "report/robustness/levels";
import { startParameters } from "report/robustness/parameters";
import { startPoints } from "report/robustness/points";
import { startShares } from "report/robustness/shares";

/** Adds the cards of a map; `other` is one to compare it with, if there is any. */
export function startMap(map, other = null) {
  startShares(map, other);
  for (const one of [startIndices, startLevels, startPoints, startParameters]) one(map);
}
