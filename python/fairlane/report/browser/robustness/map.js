/** A robustness map: shares at which clauses hold, what decides them, parameters. */

import { startIndices } from "report/robustness/indices";
import { startLevels } from "report/robustness/levels";
import { startParameters } from "report/robustness/parameters";
import { startPoints } from "report/robustness/points";
import { startShares } from "report/robustness/shares";
import { choose } from "report/robustness/state";

/** Adds the cards of a map; `other` is one to compare it with, if there is any. */
export function startMap(map, other = null) {
  const depending = map.clauses.findIndex(({ verdict, decided_by: by }) => verdict === "depends" && by);
  choose({ clause: Math.max(0, depending) });
  startShares(map, other);
  for (const one of [startIndices, startLevels, startPoints, startParameters]) one(map);
}
