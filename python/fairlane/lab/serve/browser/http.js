/** Requests to the server. */

/** JSON from an address of the server; an Error says in words why there is none. */
export async function load(url, options = {}) {
  let answer;
  try {
    answer = await fetch(url, { ...options, credentials: "same-origin", cache: "no-store", redirect: "error" });
  } catch {
    throw Object.assign(new Error("The server does not answer. It may have been ended: fairlane serve starts it again."), { away: true });
  }
  const data = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(data.error ?? `The server answers ${answer.status}.`), { status: answer.status });
  return data;
}

/** Calls `once` again and again with a pause between, until it returns false; not while the page is hidden. */
export function repeat(once, pause) {
  const next = async () => {
    if (document.hidden) {
      document.addEventListener("visibilitychange", next, { once: true });
      return;
    }
    if ((await once()) !== false) setTimeout(next, pause);
  };
  next();
}

/** Shows a message at the top of the page, or none. */
export function trouble(words) {
  const shown = document.getElementById("trouble");
  shown.hidden = !words;
  if (shown.textContent !== (words ?? "")) shown.textContent = words ?? "";
}

export const given = JSON.parse(document.getElementById("given").textContent);
