/** What is chosen on the page of a reproduction. */

import { stateOf } from "report/state";

export const { chosen, choose, subscribe } = stateOf({ claim: "" /* its id, or nothing for all */ });
