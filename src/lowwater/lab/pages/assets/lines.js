// Lines over a common base, with events marked on one of them, names at their ends, and a legend that hides and shows.

const EVENTS = {
  summary: { hue: 4, shape: "M0,-7 L7,6 L-7,6 Z" },
  prune: { hue: 3, shape: "M-5.5,-5.5 H5.5 V5.5 H-5.5 Z" },
  condense: { hue: 7, shape: "M0,-7.5 L7.5,0 L0,7.5 L-7.5,0 Z" },
};
const OTHER_EVENT = { hue: 2, shape: "M-6,0 A6,6 0 1 0 6,0 A6,6 0 1 0 -6,0 Z" };

/** The mark of an event, about the origin. */
function eventMark(kind) {
  const { hue, shape } = EVENTS[kind] ?? OTHER_EVENT;
  return draw("path", { class: `event fill-${hue}`, d: shape });
}

/** The points of a line; a held value goes on until the next point. */
function path(xs, ys, held) {
  return xs
    .map((x, index) => {
      const [at, y] = [x.toFixed(1), ys[index].toFixed(1)];
      if (!index) return `M${at},${y}`;
      return held ? `H${at}V${y}` : `L${at},${y}`;
    })
    .join("");
}

/**
 * Draw lines. `plot`: `label`, `xs`, `series` (each `name`, `look`, `ys`), `events` (each `index`, `kind`, `said`) on the
 * series called `of`, `height`, `base` (title), `baseSaid`, `said` and `told` (values short and exact), `title` of an x.
 */
function lines(host, legend, plot) {
  const hidden = (host.hiddenNames ??= new Set());
  const shown = () => plot.series.filter((each) => !hidden.has(each.name));
  const drawing = (width) => {
    const wide = width > 640;
    const height = wide ? (plot.height ?? 330) : 260;
    const longest = Math.max(...plot.series.map((each) => Math.min(22, each.name.length)));
    const [left, right, top, bottom] = [58, wide ? width - 18 - longest * 7 : width - 10, 14, height - 44];
    const y = scale(0, Math.max(...shown().flatMap((each) => each.ys), 1), bottom, top, 5, true);
    const x = scale(plot.xs[0], plot.xs.at(-1), left, right, wide ? 8 : 4);
    const places = plot.xs.map(x.at);
    const nodes = [...valueAxis(y, left, right, plot.said), ...baseAxis(x, bottom, plot.baseSaid, plot.base)];
    const drawn = shown().sort((one, other) => (one.look.strong ? 1 : 0) - (other.look.strong ? 1 : 0));
    for (const { look, ys } of drawn) {
      const kind = look.bound ? "bound" : `line line-${look.hue}${look.strong ? " strong" : ""}`;
      nodes.push(
        draw("path", {
          class: kind,
          "stroke-dasharray": look.dash ?? null,
          d: path(places, ys.map(y.at), plot.held),
        }),
      );
    }
    if (wide) nodes.push(...endNames(drawn, y, right, top, bottom));
    const marked = shown().find((each) => each.name === plot.of);
    if (marked) nodes.push(...eventMarks(plot.events ?? [], marked, places, y));
    return { height, nodes, stops: lineStops(plot, drawn, places, y, top, bottom), nearest: "x" };
  };
  chart(host, plot.label, drawing);
  if (legend) lineLegend(host, legend, plot, hidden, () => lines(host, legend, plot));
}

function endNames(drawn, y, right, top, bottom) {
  const labels = drawn.map((each) => ({ each, y: y.at(each.ys.at(-1)) }));
  return apart(labels, 15, top, bottom).flatMap(({ each, y: from, placed: at }) => [
    draw("path", {
      class: each.look.bound ? "lean" : `edge line-${each.look.hue}`,
      d: `M${right + 1},${from} L${right + 10},${at}`,
    }),
    draw("text", { class: each.look.strong ? "ours" : "", x: right + 14, y: at + 4 }, short(each.name, 22)),
  ]);
}

const eventMarks = (events, series, places, y) =>
  events.map(({ index, kind }) => {
    const mark = eventMark(kind);
    mark.setAttribute(
      "transform",
      `translate(${places[index].toFixed(1)},${y.at(series.ys[index]).toFixed(1)})`,
    );
    return mark;
  });

function lineStops(plot, drawn, places, y, top, bottom) {
  const byValue = (index) => [...drawn].sort((one, other) => other.ys[index] - one.ys[index]);
  return places.map((x, index) => ({
    x,
    y: (top + bottom) / 2,
    title: plot.title(index),
    rows: () => [
      ...byValue(index).map((each) => [each.look, each.name, plot.told(each.ys[index])]),
      ...(plot.events ?? [])
        .filter((event) => event.index === index)
        .map((event) => [null, plot.of, event.said]),
    ],
    mark: () => [
      draw("line", { class: "cursor", x1: x, x2: x, y1: top, y2: bottom }),
      ...byValue(index).map((each) =>
        draw("circle", {
          class: each.look.bound ? "ring" : `fill-${each.look.hue}`,
          cx: x,
          cy: y.at(each.ys[index]),
          r: 3.6,
        }),
      ),
    ],
  }));
}

function lineLegend(host, legend, plot, hidden, again) {
  const toggle = (name) => {
    if (hidden.has(name)) hidden.delete(name);
    else if (plot.series.filter((each) => !hidden.has(each.name)).length > 1) hidden.add(name);
    again();
    [...legend.querySelectorAll("button")].find((each) => each.dataset.name === name)?.focus();
  };
  const key = ({ name, look }) => {
    const pressed = hidden.has(name) ? "false" : "true";
    const about = {
      type: "button",
      "data-name": name,
      "aria-pressed": pressed,
      title: "Hide or show",
      onclick: () => toggle(name),
    };
    return make("li", {}, make("button", about, sample(look), name));
  };
  const mark = (kind) => {
    const icon = draw("svg", { "aria-hidden": "true", viewBox: "-11 -8 22 16" }, eventMark(kind));
    return make("li", {}, make("span", { class: "key" }, icon, plot.eventNames[kind] ?? kind));
  };
  const kinds = new Set((plot.events ?? []).map((event) => event.kind));
  legend.replaceChildren(...plot.series.map(key), ...[...kinds].map(mark));
}
