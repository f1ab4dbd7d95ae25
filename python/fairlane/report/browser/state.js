/** What is chosen on a page, and who wants to know when that changes. */

/** A state with these keys and values: `chosen` to read it, `choose` to change it, `subscribe` to hear of changes. */
export function stateOf(initial) {
  const state = { ...initial };
  const listeners = [];
  const keys = Object.keys(state);
  const chosen = Object.freeze(Object.defineProperties({}, Object.fromEntries(keys.map((key) => [key, { get: () => state[key], enumerable: true }]))));
  return {
    chosen,
    /** Changes some of the state, and calls everybody who subscribed to one of these keys, once. */
    choose(changes) {
      const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
      Object.assign(state, changes);
      for (const listener of listeners) if (changed.some((key) => listener.keys.includes(key))) listener.call();
    },
    subscribe(wanted, call) {
      listeners.push({ keys: wanted, call });
    },
  };
}
