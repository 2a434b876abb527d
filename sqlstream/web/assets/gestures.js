// Moving and zooming a graph with the mouse, the wheel and fingers. One finger scrolls the page until the graph is tapped.

const SLIP = 4;

/** Follows what happens on `graph.container`; calls `graph.zoom(factor, x, y)`, `graph.shift(dx, dy)` and `graph.clicked(event)`. */
export function followGestures(graph, { wheel }) {
  const { container, svg } = graph;
  const pointers = new Map();
  let [hasMoved, following] = [false, null];

  const inBox = (x, y) => {
    const box = container.getBoundingClientRect();
    return [x - box.left, y - box.top];
  };
  const isActive = () => container.classList.contains("active");
  const activate = () => {
    if (isActive()) return;
    container.classList.add("active");
    const left = (event) => {
      if (container.contains(event.target)) return;
      container.classList.remove("active");
      removeEventListener("pointerdown", left, true);
    };
    addEventListener("pointerdown", left, true);
  };

  const dragged = (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (!hasMoved && Math.hypot(dx, dy) < SLIP) return;
    hasMoved = true;
    if (event.pointerType === "touch" && pointers.size < 2 && !isActive()) return; // the page scrolls
    container.classList.add("panning");
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointers.set(event.pointerId, event);
    if (!other) {
      graph.shift(dx, dy);
      return;
    }
    const span = (point) => Math.hypot(point.clientX - other.clientX, point.clientY - other.clientY) || 1;
    graph.zoom(span(event) / span(before), ...inBox((event.clientX + other.clientX) / 2, (event.clientY + other.clientY) / 2));
    graph.shift(dx / 2, dy / 2);
  };
  const released = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (event.type === "pointerup" && event.pointerType === "touch" && !hasMoved) activate();
    if (pointers.size) return;
    following.abort();
    following = null;
    container.classList.remove("panning");
  };

  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (!pointers.size) hasMoved = false;
    pointers.set(event.pointerId, event);
    if (following) return;
    following = new AbortController();
    const { signal } = following;
    addEventListener("pointermove", dragged, { signal });
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, released, { signal });
  });
  svg.addEventListener("click", (event) => { if (!hasMoved) graph.clicked(event); });
  // two fingers are for the graph: the browser would scroll or zoom the page
  container.addEventListener("touchmove", (event) => { if (event.touches.length > 1 && event.cancelable) event.preventDefault(); }, { passive: false });
  container.addEventListener("wheel", (event) => {
    const isZoom = event.ctrlKey || event.metaKey || wheel === "zoom";
    if (!isZoom && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (isZoom) graph.zoom(Math.exp(-event.deltaY * 0.0018), ...inBox(event.clientX, event.clientY));
    else graph.shift(-event.deltaX, 0);
  }, { passive: false });
}
