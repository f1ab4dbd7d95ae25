/** Where links are drawn, and which link or vertex is near a point. Vertices are hosts, and after them switches. */

const BEND = 0.13; // how far a bent link leaves the straight line, as a share of its length
const STEPS = 8; // straight parts of a bent link

/** How far a point is from the line between two others. */
function distanceTo(x, y, ax, ay, bx, by) {
  const [dx, dy] = [bx - ax, by - ay];
  const along = Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(ax + along * dx - x, ay + along * dy - y);
}

export function geometryOf({ links, places }) {
  const vertexCount = places.length / 2;
  const linkCount = links.from.length;
  const placeOf = (vertex) => [places[2 * vertex], places[2 * vertex + 1]];
  const ends = [0, 1].map((axis) => {
    const values = Array.from({ length: vertexCount }, (_, vertex) => places[2 * vertex + axis]);
    return [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  });
  const sizes = ends.map(([low, high]) => high - low);

  /** The points of a link: its ends, or those of a curve. Both directions of a cable bend to the same side. */
  function pathOf(link) {
    const [ax, ay, bx, by] = links.segments.subarray(4 * link, 4 * link + 4);
    if (!links.bent[link]) return [[ax, ay], [bx, by]];
    const side = links.from[link] < links.to[link] ? 2 * BEND : -2 * BEND;
    const [cx, cy] = [(ax + bx) / 2 - side * (by - ay), (ay + by) / 2 + side * (bx - ax)];
    return Array.from({ length: STEPS + 1 }, (_, at) => {
      const t = at / STEPS;
      const [p, q, r] = [(1 - t) ** 2, 2 * t * (1 - t), t * t];
      return [p * ax + q * cx + r * bx, p * ay + q * cy + r * by];
    });
  }

  /** The vertex or link within `reach` of a point, the nearest one; vertices come first. In the unit of places. */
  function nearest(x, y, reach) {
    let best = { distance: reach };
    for (let vertex = 0; vertex < vertexCount; vertex += 1) {
      const distance = Math.hypot(places[2 * vertex] - x, places[2 * vertex + 1] - y);
      if (distance < best.distance) best = { distance, vertex };
    }
    for (let link = 0; best.vertex === undefined && link < linkCount; link += 1) {
      const path = pathOf(link);
      for (let at = 1; at < path.length; at += 1) {
        const distance = distanceTo(x, y, ...path[at - 1], ...path[at]);
        if (distance < best.distance) best = { distance, link };
      }
    }
    return best;
  }

  const linksOf = (vertex) => Array.from({ length: linkCount }, (_, link) => link).filter((link) => links.from[link] === vertex || links.to[link] === vertex);
  return { vertexCount, linkCount, placeOf, pathOf, nearest, linksOf, ends, sizes };
}
