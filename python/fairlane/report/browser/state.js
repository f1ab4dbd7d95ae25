/** What is chosen on the page, and who wants to know when that changes. */

const state = {
  metric: "active", // what links are coloured by: active, stalled, queue or jobs
  victim: null, // numbers of jobs, or null for all
  aggressor: null,
  interval: null, // number of the interval of samples, or null for the whole run
  difference: false, // whether links and matrix show the difference to the other run
  link: null,
  vertex: null,
};
const listeners = [];

export const chosen = Object.freeze(
  Object.defineProperties({}, Object.fromEntries(Object.keys(state).map((key) => [key, { get: () => state[key], enumerable: true }]))),
);

/** Changes some of the state, and calls everybody who subscribed to one of these keys, once. */
export function choose(changes) {
  const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
  Object.assign(state, changes);
  for (const { keys, call } of listeners) if (changed.some((key) => keys.includes(key))) call();
}

export function subscribe(keys, call) {
  listeners.push({ keys, call });
}
