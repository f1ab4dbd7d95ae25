/**
 * Drag, wheel and pinch. While a gesture lasts, what is drawn is moved and scaled as a picture, which takes no time
 * however many links there are; it is drawn anew when the gesture rests.
 */

const REST_MS = 140;
const PER_WHEEL = 0.0016; // zoom by a step of the wheel
const CLICK = 4; // pixels that a pointer may move in a click
const NONE = Object.freeze({ scale: 1, x: 0, y: 0 });

/**
 * Listens to gestures on an element.
 *
 * @param {HTMLElement} plot The element; its canvas and `.overlay` are moved.
 * @param {function({scale: number, x: number, y: number}): void} commit Draws anew what is seen at
 *   `scale * pixel + (x, y)` of what was drawn before.
 * @returns {function(): boolean} Whether a gesture is under way.
 */
export function startGestures(plot, commit) {
  const pointers = new Map();
  let moved = NONE;
  let timer = null;

  const place = (event) => {
    const box = plot.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const transform = (text) => {
    for (const layer of plot.querySelectorAll("canvas, .overlay")) layer.style.transform = text;
  };
  const rest = () => {
    timer = null;
    if (moved === NONE) return;
    const done = moved;
    moved = NONE;
    commit(done);
    transform("");
  };
  const change = (next) => {
    moved = next;
    transform(`translate(${moved.x}px, ${moved.y}px) scale(${moved.scale})`);
    clearTimeout(timer);
    timer = pointers.size ? null : setTimeout(rest, REST_MS);
  };
  const zoom = (factor, { x, y }) => change({ scale: moved.scale * factor, x: x - (x - moved.x) * factor, y: y - (y - moved.y) * factor });
  const middle = (points) => ({ x: (points[0].x + points.at(-1).x) / 2, y: (points[0].y + points.at(-1).y) / 2 });
  const apart = (points) => Math.hypot(points[0].x - points.at(-1).x, points[0].y - points.at(-1).y);

  plot.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * PER_WHEEL), place(event));
  }, { passive: false });
  plot.addEventListener("pointerdown", (event) => {
    const at = place(event);
    pointers.set(event.pointerId, { ...at, begin: at });
  });
  window.addEventListener("pointermove", (event) => {
    const known = pointers.get(event.pointerId);
    if (!known) return;
    const before = [...pointers.values()].map(({ x, y }) => ({ x, y }));
    const at = place(event);
    // A click may move a little; a gesture that began goes on however little it moves.
    if (moved === NONE && Math.hypot(at.x - known.begin.x, at.y - known.begin.y) < CLICK) return;
    Object.assign(known, at);
    const after = [...pointers.values()];
    const [from, to] = [middle(before), middle(after)];
    if (after.length > 1 && apart(before) > 0) zoom(apart(after) / apart(before), from);
    change({ ...moved, x: moved.x + to.x - from.x, y: moved.y + to.y - from.y });
  });
  for (const name of ["pointerup", "pointercancel"]) {
    window.addEventListener(name, (event) => {
      if (pointers.delete(event.pointerId) && !pointers.size) rest();
    });
  }
  return () => moved !== NONE;
}
