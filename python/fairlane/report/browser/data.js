/** The data of the page: JSON, in which arrays of numbers are deflated and in base64 (see packing.py). */

const KINDS = { f32: Float32Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array };

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new KINDS[packed.array](await new Response(stream).arrayBuffer());
}

async function unpackAll(value) {
  if (value === null || typeof value !== "object") return value;
  if (typeof value.array === "string" && value.array in KINDS) return unpack(value);
  if (Array.isArray(value) && typeof value[0] !== "object") return value;
  const entries = await Promise.all(Object.entries(value).map(async ([key, one]) => [key, await unpackAll(one)]));
  return Array.isArray(value) ? entries.map(([, one]) => one) : Object.fromEntries(entries);
}

export const data = await unpackAll(JSON.parse(document.getElementById("data").textContent));

export const jobs = data.jobs;
export const jobNumber = new Map(jobs.name.map((name, number) => [name, number]));
export const fabric = data.fabric;
export const links = fabric.links;
export const linkCount = links.from.length;
export const hostCount = fabric.hosts.length;
export const comparison = data.compare;

/** The name of a host or switch by its vertex: hosts come first. */
export const vertexName = (vertex) =>
  vertex < hostCount ? fabric.hosts[vertex] : fabric.switches[vertex - hostCount];

/** A link by its sending end, as in the tables: "leaf4 port 7 to spine2". */
export const linkName = (link) =>
  `${vertexName(links.from[link])} port ${links.from_port[link]} to ${vertexName(links.to[link])}`;

/** The jobs on each host. */
export const jobsOfHost = (() => {
  const found = new Map();
  jobs.hosts.forEach((hosts, job) => {
    for (const host of hosts) found.set(host, [...(found.get(host) ?? []), job]);
  });
  return found;
})();
