/** Which clause of a map is chosen, by its number in the table. */

import { stateOf } from "report/state";

export const { chosen, choose, subscribe } = stateOf({ clause: 0 });
