/** Where links are drawn, and which link or vertex is near a point. */

import { fabric, hostCount, linkCount, links } from "report/run/data";

const places = fabric.places;
export const vertexCount = places.length / 2;
export const placeOf = (vertex) => [places[2 * vertex], places[2 * vertex + 1]];

/** The extent of the whole: left, right, bottom, top. */
export const extent = (() => {
  const found = [Infinity, -Infinity, Infinity, -Infinity];
  for (let vertex = 0; vertex < vertexCount; vertex += 1) {
    const [x, y] = placeOf(vertex);
    found[0] = Math.min(found[0], x);
    found[1] = Math.max(found[1], x);
    found[2] = Math.min(found[2], y);
    found[3] = Math.max(found[3], y);
  }
  return found;
})();

/** Ends of each link: x, y, x, y. Links between the same two vertices are side by side. */
export const segments = (() => {
  const together = new Map();
  for (let link = 0; link < linkCount; link += 1) {
    const [a, b] = [links.from[link], links.to[link]].sort((one, two) => one - two);
    const key = a * vertexCount + b;
    if (!together.has(key)) together.set(key, []);
    together.get(key).push(link);
  }
  const size = Math.max(extent[1] - extent[0], extent[3] - extent[2]);
  const gap = 0.005 * size * Math.min(1, 10 / Math.sqrt(vertexCount));
  const found = new Float64Array(4 * linkCount);
  for (const [key, group] of together) {
    const [ax, ay] = placeOf(Math.floor(key / vertexCount));
    const [bx, by] = placeOf(key % vertexCount);
    const length = Math.hypot(bx - ax, by - ay) || 1;
    group.forEach((link, at) => {
      const shift = ((at - (group.length - 1) / 2) * gap) / length;
      const [dx, dy] = [-(by - ay) * shift, (bx - ax) * shift];
      const ends = [ax + dx, ay + dy, bx + dx, by + dy];
      found.set(links.from[link] < links.to[link] ? ends : [ends[2], ends[3], ends[0], ends[1]], 4 * link);
    });
  }
  return found;
})();

const BEND = 0.13; // how far a bent link leaves the straight line, as a share of its length
const STEPS = 8; // straight parts of a bent link

/** Whether a link has to be bent, because it would lead through other switches: along a row or column of a plan. */
function isBent(link) {
  const [ax, ay, bx, by] = segments.subarray(4 * link, 4 * link + 4);
  const [dx, dy] = [Math.abs(bx - ax), Math.abs(by - ay)];
  if (fabric.kind === "grid") return Math.min(dx, dy) < 0.1 && Math.max(dx, dy) > 1.1; // neighbours are 1 apart
  return fabric.kind === "tree" && dy < 0.01 * dx;
}

const bent = Uint8Array.from({ length: linkCount }, (_, link) => Number(isBent(link)));

/** The points of a link: its ends, or those of a curve. Both directions of a cable bend to the same side. */
export function pathOf(link) {
  const [ax, ay, bx, by] = segments.subarray(4 * link, 4 * link + 4);
  if (!bent[link]) return [[ax, ay], [bx, by]];
  const side = links.from[link] < links.to[link] ? 2 * BEND : -2 * BEND;
  const [cx, cy] = [(ax + bx) / 2 - side * (by - ay), (ay + by) / 2 + side * (bx - ax)];
  return Array.from({ length: STEPS + 1 }, (_, at) => {
    const t = at / STEPS;
    const [p, q, r] = [(1 - t) ** 2, 2 * t * (1 - t), t * t];
    return [p * ax + q * cx + r * bx, p * ay + q * cy + r * by];
  });
}

/** How far a point is from the line between two others. */
function distanceTo(x, y, ax, ay, bx, by) {
  const [dx, dy] = [bx - ax, by - ay];
  const along = Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(ax + along * dx - x, ay + along * dy - y);
}

/** Links that begin or end at a vertex. */
export function linksOf(vertex) {
  const found = [];
  for (let link = 0; link < linkCount; link += 1) {
    if (links.from[link] === vertex || links.to[link] === vertex) found.push(link);
  }
  return found;
}

/** The vertex or link within `reach` of a point, the nearest one; vertices come first. In the unit of places. */
export function nearest(x, y, reach) {
  let best = { distance: reach };
  for (let vertex = 0; vertex < vertexCount; vertex += 1) {
    const distance = Math.hypot(places[2 * vertex] - x, places[2 * vertex + 1] - y);
    if (distance < best.distance) best = { distance, vertex };
  }
  if (best.vertex !== undefined) return best;
  for (let link = 0; link < linkCount; link += 1) {
    let distance = Infinity;
    if (bent[link]) {
      const path = pathOf(link);
      for (let at = 1; at < path.length; at += 1) distance = Math.min(distance, distanceTo(x, y, ...path[at - 1], ...path[at]));
    } else {
      const at = 4 * link;
      distance = distanceTo(x, y, segments[at], segments[at + 1], segments[at + 2], segments[at + 3]);
    }
    if (distance < best.distance) best = { distance, link };
  }
  return best;
}

export const isHost = (vertex) => vertex < hostCount;
