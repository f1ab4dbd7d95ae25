/** What is chosen in the fabric and in the matrix, and who wants to know when that changes. */

const state = {
  metric: "active", // what links are coloured by: active, stalled, queue, jobs or rail
  victim: null, // numbers of jobs, or null for all
  aggressor: null,
  interval: null, // number of the interval of samples, or null for the whole run
  difference: false, // whether links and matrix show the difference to the other run
  link: null,
  vertex: null,
};
const listeners = [];
export const chosen = new Proxy(state, { set: () => false });

/** Changes some of the state, and calls everybody who subscribed to one of these keys, once. */
export function choose(changes) {
  const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
  Object.assign(state, changes);
  for (const { keys, call } of listeners) if (changed.some((key) => keys.includes(key))) call();
}

export const subscribe = (keys, call) => listeners.push({ keys, call });
