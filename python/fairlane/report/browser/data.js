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

/** What the page shows of a second result, or null. */
export const comparison = data.compare;
