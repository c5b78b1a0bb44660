// What every chart shares: its scales and axes, a redraw when its width changes, a cursor for pointer and keyboard.

const PAPER = 660;
const tip = document.body.appendChild(make("div", { class: "tip", role: "status" }));

/** A scale from values to pixels, with round values to mark; a `whole` one ends at such a value. */
function scale(low, most, from, to, count = 5, whole = false) {
  const rough = (most - low || 1) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((each) => each * power >= rough * 0.999);
  const high = whole ? low + step * Math.ceil((most - low || 1) / step - 1e-6) : most;
  const reach = high - low || 1;
  const at = (value) => from + ((value - low) / reach) * (to - from);
  const marks = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step)
    marks.push(value + 0);
  return { at, marks, low, high };
}

/** The sample of a line or an area that legends and tooltips show. */
function sample(look) {
  const area = {
    class: look.hatch ? `hatch-${look.hue}` : `fill-${look.hue}`,
    x: 4,
    y: 0,
    width: 14,
    height: 10,
    rx: 2,
  };
  const line = {
    x1: 0,
    x2: 22,
    y1: 5,
    y2: 5,
    "stroke-width": look.strong ? 3.5 : 2,
    "stroke-dasharray": look.dash ?? null,
  };
  const bound = { ...line, stroke: "currentColor", "stroke-dasharray": "6 4" };
  const drawn = look.solid
    ? draw("rect", area)
    : draw("line", look.bound ? bound : { ...line, class: `line-${look.hue}` });
  return draw("svg", { "aria-hidden": "true" }, drawn);
}

function showTip(stop, left, top) {
  const rows = stop
    .rows()
    .flatMap(([look, name, value]) => [
      look ? sample(look) : null,
      make("dt", {}, name),
      make("dd", {}, value),
    ]);
  tip.replaceChildren(make("b", {}, stop.title), make("dl", {}, ...rows.filter((each) => each !== null)));
  tip.classList.add("shown");
  const box = tip.getBoundingClientRect();
  const room = document.documentElement;
  const x = left + 16 + box.width > room.clientWidth - 8 ? left - 16 - box.width : left + 16;
  const y = Math.min(top - box.height / 2, room.clientHeight - 8 - box.height);
  tip.style.transform = `translate(${Math.max(8, Math.round(x))}px, ${Math.max(8, Math.round(y))}px)`;
}

/** Every chart with what draws it: on paper all are drawn again, at a width that leaves their words readable. */
const charts = new Map();
addEventListener("beforeprint", () => charts.forEach((redraw) => redraw(PAPER)));
addEventListener("afterprint", () => charts.forEach((redraw) => redraw()));

const hideTip = () => tip.classList.remove("shown");

/**
 * Keep a chart drawn at its host's width. `drawing(width)` returns `{ height, nodes, stops, nearest }`: stops are where
 * the cursor can stand, `nearest` is "x", "y" or "xy".
 */
function chart(host, label, drawing) {
  let drawn = null;
  let at = -1;
  let cursor = null;
  fill(
    host,
    {
      tabindex: 0,
      role: "group",
      "aria-roledescription": "chart",
      "aria-label": `${label}. Arrow keys read the values.`,
    },
    [],
  );
  const redraw = (given) => {
    const width = given ?? Math.floor(host.clientWidth);
    if (!width) return;
    drawn = drawing(width);
    cursor = draw("g", {});
    host.replaceChildren(
      draw("svg", { viewBox: `0 0 ${width} ${drawn.height}`, "aria-hidden": "true" }, ...drawn.nodes, cursor),
    );
    at = -1;
    hideTip();
  };
  const point = (index) => {
    at = index;
    const stop = drawn.stops[index];
    cursor.replaceChildren(...stop.mark());
    const box = host.getBoundingClientRect();
    showTip(stop, box.left + stop.x, box.top + stop.y);
  };
  const leave = () => {
    at = -1;
    cursor?.replaceChildren();
    hideTip();
  };
  const follow = (event) => {
    if (!drawn?.stops.length) return;
    const box = host.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const far = (stop) =>
      (drawn.nearest === "y" ? 0 : Math.abs(stop.x - x)) + (drawn.nearest === "x" ? 0 : Math.abs(stop.y - y));
    let best = 0;
    drawn.stops.forEach((stop, index) => {
      if (far(stop) < far(drawn.stops[best])) best = index;
    });
    point(best);
  };
  const steps = {
    ArrowRight: 1,
    ArrowDown: 1,
    ArrowLeft: -1,
    ArrowUp: -1,
    PageDown: 10,
    PageUp: -10,
    Home: -Infinity,
    End: Infinity,
  };
  host.onpointermove = follow;
  host.onpointerdown = follow;
  host.onpointerleave = leave;
  host.onblur = leave;
  host.onkeydown = (event) => {
    if (event.key === "Escape") return leave();
    if (!(event.key in steps) || !drawn?.stops.length) return undefined;
    event.preventDefault();
    const next = at < 0 && steps[event.key] === 1 ? 0 : at + steps[event.key];
    return point(Math.max(0, Math.min(drawn.stops.length - 1, next)));
  };
  host.watcher?.disconnect();
  host.watcher = new ResizeObserver(() => redraw());
  host.watcher.observe(host);
  charts.set(host, redraw);
  redraw();
}

/** Horizontal grid lines with their values on the left. */
const valueAxis = (y, left, right, said) =>
  y.marks.flatMap((value) => [
    draw("line", {
      class: value === y.low ? "axis" : "grid",
      x1: left,
      x2: right,
      y1: y.at(value),
      y2: y.at(value),
    }),
    draw("text", { x: left - 8, y: y.at(value) + 4, "text-anchor": "end" }, said(value)),
  ]);

/** Values below the plot, left out where they would touch. */
function baseAxis(x, bottom, said, title) {
  const nodes = [];
  let free = -Infinity;
  for (const value of x.marks) {
    const text = said(value);
    const half = text.length * 3.4 + 6;
    if (x.at(value) - half < free) continue;
    free = x.at(value) + half;
    nodes.push(draw("line", { class: "axis", x1: x.at(value), x2: x.at(value), y1: bottom, y2: bottom + 4 }));
    nodes.push(draw("text", { x: x.at(value), y: bottom + 18, "text-anchor": "middle" }, text));
  }
  if (title)
    nodes.push(
      draw("text", { x: (x.at(x.low) + x.at(x.high)) / 2, y: bottom + 36, "text-anchor": "middle" }, title),
    );
  return nodes;
}

/** Push labels apart so that none overlaps the next, each as near to its own height as the others let it. */
function apart(labels, gap, low, high) {
  const placed = [...labels].sort((one, other) => one.y - other.y);
  const blocks = [];
  for (const label of placed) {
    let block = { labels: [label], middle: label.y };
    while (
      blocks.length &&
      blocks.at(-1).middle + (gap * blocks.at(-1).labels.length) / 2 >
        block.middle - (gap * block.labels.length) / 2
    ) {
      const before = blocks.pop();
      const together = [...before.labels, ...block.labels];
      block = { labels: together, middle: together.reduce((sum, each) => sum + each.y, 0) / together.length };
    }
    blocks.push(block);
  }
  blocks.forEach((block) =>
    block.labels.forEach((label, index) => {
      label.placed = block.middle + gap * (index - (block.labels.length - 1) / 2);
    }),
  );
  placed.forEach((label, index) => {
    label.placed = Math.max(label.placed, index ? placed[index - 1].placed + gap : low);
  });
  placed.reverse().forEach((label, index) => {
    label.placed = Math.min(label.placed, index ? placed[index - 1].placed - gap : high);
  });
  return placed;
}

/** Say in a chart's place that there is nothing to draw. */
function nothing(host, said) {
  host.watcher?.disconnect();
  charts.delete(host);
  host.onpointermove = host.onpointerdown = host.onkeydown = null;
  host.removeAttribute("tabindex");
  host.replaceChildren(make("p", { class: "caption" }, said));
}

/** A row of buttons of which one is pressed. */
function choice(host, name, options, chosen, onchosen) {
  const press = (value) =>
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", options[index][0] === value));
  const onclick = (value) => () => {
    press(value);
    onchosen(value);
  };
  const buttons = options.map(([value, said]) =>
    make("button", { type: "button", onclick: onclick(value) }, said),
  );
  press(chosen);
  host.replaceChildren(make("div", { class: "switch", role: "group", "aria-label": name }, ...buttons));
}
