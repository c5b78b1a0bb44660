// One kind of chart for every page, drawn by uPlot: lines, stacked areas or columns, and points over a common base.

const PAPER = 900;
const FONT = "12px system-ui, sans-serif";
const GLYPHS = { summary: ["▲", 4], prune: ["■", 3], condense: ["◆", 7] };
const PATTERNS = { solid: undefined, dashed: [7, 3], dotted: [2, 3] };
const STEPS = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
/** How far apart the marks of events are at least, in pixels, where there are many. */
const NEAREST = 12;
const hosts = new Set();
const ruler = document.body.appendChild(make("i", { hidden: true }));

/** What a colour of the style sheet comes to on a canvas at this moment, in light or dark. */
function ink(colour) {
  ruler.style.color = colour;
  return getComputedStyle(ruler).color;
}

const sum = (values) => values.reduce((all, each) => all + (each ?? 0), 0);
const isWide = (width) => width > 640;
const sizeOf = (plot, width) => ({
  width,
  height: isWide(width) ? (plot.height ?? 330) : Math.min(380, plot.height ?? 270),
});

/**
 * Draw a chart in `host`, which keeps its uPlot as `host.plot` and the names of hidden series in `host.off`.
 *
 * `plot`: `label`; `xs` in ascending order; `title(index)` in words; `said` and `told`: values short and exact;
 * `whole`: what the sums of all values are called, shown instead of the last values while the cursor is elsewhere;
 * `base` and `baseSaid`: the name and the values of the axis below; `height`; `range` of the values.
 * `kind`: "lines", "steps" (a value holds until the next), "areas" or "columns" (stacked, the first on top), "points".
 * `series`: each `name`, `ys` (null where it has no value), `colour`, `width`, `dash`, `isBold`, `fill` of an area, and
 * for a point `dot` (`size`, `isHollow`) and `mark`, a shorter name. A threshold is a series of one value, dashed.
 * `marks`: vertical lines at an `x`, each with a `name` and, for an event, its `kind` and what is `said` about it.
 * `sync`: charts with the same word share their cursor. `onpick(name)` is called when the line of a series is clicked,
 * `onopen(index)` when a value of the base is, or Enter is pressed on it.
 */
function chart(host, plot) {
  const { xs, series, kind, marks = [], told } = plot;
  const isStacked = kind === "areas" || kind === "columns";
  const isPoints = kind === "points";
  const off = (host.off ??= new Set());
  const colour = (index) => series[index - 1].colour;
  let focused = null;

  /** The rows to draw: as given, or each on top of those below it that are shown. */
  const rows = () => {
    if (!isStacked) return [xs, ...series.map((each) => each.ys)];
    const sums = xs.map(() => 0);
    const stacked = [...series].reverse().map((each) => {
      if (!off.has(each.name)) each.ys.forEach((value, index) => (sums[index] += value));
      return [...sums];
    });
    return [xs, ...stacked.reverse()];
  };

  const paths = {
    steps: uPlot.paths.stepped({ align: 1 }),
    areas: uPlot.paths.stepped({ align: 1 }),
    columns: uPlot.paths.bars({ size: [0.8, 56] }),
  }[kind];

  const line = (each) => ({
    label: make(
      "button",
      { type: "button", title: "Hide or show", "aria-pressed": !off.has(each.name) },
      each.name,
    ),
    class: isPoints ? "silent" : undefined,
    show: !off.has(each.name),
    stroke: () => ink(each.colour),
    width: kind === "columns" ? 0 : (each.width ?? 1.7),
    dash: PATTERNS[each.dash],
    fill: isStacked ? () => ink(each.fill ?? each.colour) : undefined,
    paths: each.dot ? () => null : isPoints ? uPlot.paths.stepped({ align: 1 }) : paths,
    points: each.dot
      ? {
          show: true,
          size: each.dot.size,
          width: 2.5,
          stroke: () => ink(each.colour),
          fill: () => ink(each.dot.isHollow ? "var(--card)" : each.colour),
        }
      : { show: false },
    value: (_u, _value, _series, index) => told(index === null ? sum(each.ys) : each.ys[index]),
  });

  const soft = () => ink("var(--soft)");
  const axis = { font: FONT, labelFont: FONT, labelSize: 20, stroke: soft };
  const below = {
    ...axis,
    label: plot.base,
    size: 30,
    gap: 4,
    space: kind === "lines" || kind === "steps" ? 50 : 70,
    incrs: isPoints
      ? undefined
      : [1, 10, 100, 1e3, 1e4, 1e5].flatMap((power) => [power, 2 * power, 5 * power]),
    values: (_u, all) => all.map(plot.baseSaid),
    grid: { show: false },
    ticks: { stroke: soft, size: 4, width: 1 },
    border: { show: true, stroke: soft, width: 1 },
  };
  const beside = {
    ...axis,
    size: 58,
    space: 40,
    values: (_u, all) => all.map(plot.said),
    grid: { stroke: () => ink("var(--grid)"), width: 1 },
    ticks: { show: false },
  };

  const marksHere = (index) =>
    marks.filter((each) => each.x === xs[index] && each.said).map((each) => each.said);
  const title = (index) => [plot.title(index), ...marksHere(index)].join(" · ");
  const shown = () => series.filter((each) => !off.has(each.name));
  const inWords = (index) =>
    [title(index), ...(isPoints ? [] : shown().map((each) => `${each.name} ${told(each.ys[index])}`))].join(
      "; ",
    );

  const flags = marks.map((each) => {
    const { glyph, colour } = lookOf(each);
    const about = { class: glyph ? "mark" : "mark named", colour, title: each.said ?? each.name };
    return { ...each, flag: make("span", about, glyph || each.name) };
  });

  /** Names at the ends of lines, or beside points, none on top of another. */
  const writeNames = (u) => {
    const ratio = uPlot.pxRatio;
    const names = isPoints
      ? namesOfPoints(u, series)
      : isWide(u.width) && !isStacked
        ? namesOfLines(u, series)
        : [];
    u.ctx.save();
    u.ctx.textBaseline = "middle";
    u.ctx.textAlign = "left";
    u.ctx.lineJoin = "round";
    for (const { name, x, y, from, isBold } of names) {
      u.ctx.font = `${isBold ? "bold " : ""}${12.5 * ratio}px system-ui, sans-serif`;
      u.ctx.lineWidth = ratio;
      u.ctx.strokeStyle = soft();
      u.ctx.beginPath();
      if (from) u.ctx.moveTo(from.x, from.y);
      if (from) u.ctx.lineTo(from.to ?? x - 3 * ratio, y);
      u.ctx.stroke();
      u.ctx.lineWidth = 4 * ratio;
      u.ctx.strokeStyle = ink("var(--card)");
      u.ctx.strokeText(name, x, y);
      u.ctx.fillStyle = ink("var(--ink)");
      u.ctx.fillText(name, x, y);
    }
    u.ctx.restore();
  };

  const placeFlags = (u) => {
    const { min, max } = u.scales.x;
    let free = 0;
    for (const { x, kind, flag } of flags) {
      const left = u.valToPos(x, "x");
      // Hundreds of events would hide the chart: of those that are close together, the first is marked; zooming in shows the others.
      flag.hidden = x < min || x > max || (Boolean(kind) && left < free);
      flag.style.left = `${left}px`;
      if (!flag.hidden && kind) free = left + NEAREST;
    }
  };

  const followCursor = (u) => {
    const index = u.cursor.idx ?? xs.length - 1;
    if (!isKnown(u.cursor.idx)) u.setLegend({ idx: isKnown(plot.whole) ? null : index }, false);
    u.over.setAttribute("aria-valuenow", index);
    u.over.setAttribute("aria-valuetext", inWords(index));
  };

  const toggle = (u, index, change) => {
    if (isKnown(change.focus)) focused = index;
    if (!isKnown(change.show)) return;
    const { name } = series[index - 1];
    off[change.show ? "delete" : "add"](name);
    u.series[index].label.setAttribute("aria-pressed", change.show);
    if (isStacked) u.setData(rows(), false);
  };

  host.plot?.destroy();
  const width = Math.floor(host.clientWidth) || PAPER;
  const longest = () => Math.max(0, ...shown().map((each) => Math.min(22, each.name.length)));
  const right = isPoints || isStacked ? 24 : (u) => (isWide(u.width) ? longest() * 7 + 22 : 8);
  const u = new uPlot(
    {
      class: kind,
      ...sizeOf(plot, width),
      padding: [16, right, 0, 0],
      scales: {
        x: { time: false, range: (_u, low, high) => baseRange(kind, low, high) },
        y: { range: (_u, _low, high) => plot.range ?? uPlot.rangeNum(0, Math.max(high ?? 1, 1), 0.05, true) },
      },
      axes: [below, beside],
      series: [
        {
          label: "",
          value: (_u, _value, _series, index) => (index === null ? (plot.whole ?? "") : title(index)),
        },
        ...series.map(line),
      ],
      legend: {
        markers: {
          width: (_u, index) => Math.max(2, series[index - 1].width ?? 2),
          dash: (_u, index) => series[index - 1].dash ?? "solid",
          stroke: (_u, index) => colour(index),
          fill: (_u, index) => series[index - 1].fill ?? (isStacked ? colour(index) : "none"),
        },
      },
      focus: { alpha: 0.3 },
      cursor: {
        y: false,
        points: { show: !isStacked && !isPoints, size: 8 },
        focus: { prox: isStacked || isPoints ? -1 : 12, dist: nearPointer },
        drag: { x: !isPoints, dist: 5 },
        sync: plot.sync ? { key: plot.sync, scales: ["x", null], setSeries: false } : undefined,
      },
      hooks: {
        draw: [writeNames, placeFlags],
        setCursor: [followCursor],
        setSeries: [toggle],
      },
    },
    rows(),
  );
  host.plot = u;
  u.over.append(...flags.map(({ flag }) => flag));
  const about = {
    tabindex: 0,
    role: "slider",
    "aria-label": `${plot.label}. Arrow keys read the values.`,
    "aria-valuemin": 0,
    "aria-valuemax": xs.length - 1,
  };
  Object.entries(about).forEach(([name, value]) => u.over.setAttribute(name, value));
  u.over.addEventListener("keydown", (event) => {
    const at = u.cursor.idx ?? -1;
    if (event.key === "Enter" && at >= 0) plot.onopen?.(at);
    const next = { Home: 0, End: xs.length - 1 }[event.key] ?? at + (STEPS[event.key] ?? NaN);
    if (event.key === "Escape") u.setCursor({ left: -10, top: -10 });
    if (Number.isNaN(next)) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(xs.length - 1, next));
    u.setCursor({ left: u.valToPos(xs[index], "x"), top: u.over.clientHeight / 2 });
  });
  if (plot.onpick) u.over.addEventListener("click", () => focused && plot.onpick(series[focused - 1].name));
  if (plot.onopen) u.over.addEventListener("click", () => isKnown(u.cursor.idx) && plot.onopen(u.cursor.idx));
  followCursor(u);
  host.replaceChildren(u.root, ...eventKeys(marks), ...(isPoints ? [] : [inATable(plot, title)]));
  if (!hosts.has(host)) new ResizeObserver(() => fit(host)).observe(host);
  hosts.add(host);
  host.fit = (given) => host.plot?.setSize(sizeOf(plot, given ?? Math.floor(host.clientWidth)));
}

const fit = (host) => host.clientWidth && Math.floor(host.clientWidth) !== host.plot?.width && host.fit();

/** How far the pointer is from a line; a cursor that the keyboard or another chart moves is near none. */
const nearPointer = (u, _series, _index, y, pointer) => (u.over.matches(":hover") ? y - pointer : Infinity);

/** Room beside the first and the last value of a base. */
function baseRange(kind, low, high) {
  const room = { columns: 0.5, points: (high - low) * 0.1 || high * 0.1 || 1 }[kind] ?? 0;
  return [low - room, high + room];
}

/** The glyph and the colour of a mark; one that is no event has its name instead of a glyph. */
function lookOf({ kind }) {
  const [glyph, hue] = GLYPHS[kind] ?? ["●", 2];
  return kind ? { glyph, colour: `var(--hue-${hue})` } : { glyph: "", colour: "var(--ink)" };
}

/** The kinds of event that a chart marks. */
function eventKeys(marks) {
  const kinds = new Map(marks.filter((each) => each.kind).map((each) => [each.kind, each]));
  const keys = [...kinds.values()].map((each) => {
    const { glyph, colour } = lookOf(each);
    return make("li", {}, make("span", { colour, "aria-hidden": true }, glyph), ` ${each.name}`);
  });
  return keys.length ? [make("ul", { class: "keys" }, ...keys)] : [];
}

/** The same values as a table, made when it is asked for. */
function inATable(plot, title) {
  const box = make("div");
  const columns = [
    { key: "at", name: plot.base ?? "when", said: title, text: true },
    ...plot.series.map((each, index) => ({ key: index, name: each.name, said: plot.told })),
  ];
  const rows = plot.xs.map((_x, at) => ({ at, ...plot.series.map((each) => each.ys[at]) }));
  const fill = () =>
    box.childElementCount || table(box, { caption: plot.label, columns, rows, sort: ["at", false] });
  return make("details", { ontoggle: fill }, make("summary", {}, "Values as a table"), box);
}

/** The names of lines at their ends, pushed apart. */
function namesOfLines(u, series) {
  const [gap, ratio] = [15 * uPlot.pxRatio, uPlot.pxRatio];
  const x = u.bbox.left + u.bbox.width;
  const last = u.series[0].idxs[1];
  const ends = series
    .filter((each, index) => u.series[index + 1].show && isKnown(each.ys[last]))
    .map((each) => ({
      name: short(each.name, 22),
      isBold: each.isBold,
      from: { x, y: u.valToPos(each.ys[last], "y", true) },
    }))
    .sort((one, other) => one.from.y - other.from.y);
  let free = u.bbox.top + u.bbox.height;
  for (const each of [...ends].reverse()) free = (each.y = Math.min(each.from.y, free)) - gap;
  let taken = u.bbox.top - gap;
  for (const each of ends) taken = each.y = Math.max(each.y, taken + gap);
  return ends.map((each) => ({ ...each, x: x + 14 * ratio }));
}

/** The names of points, each in the first place beside its point that is free. */
function namesOfPoints(u, series) {
  const ratio = uPlot.pxRatio;
  const taken = [];
  const places = series.flatMap((each, index) => {
    const at = each.ys.findIndex(isKnown);
    if (!each.dot || !u.series[index + 1].show) return [];
    return [
      {
        name: each.mark ?? each.name,
        isBold: each.isBold,
        x: u.valToPos(u.data[0][at], "x", true),
        y: u.valToPos(each.ys[at], "y", true),
      },
    ];
  });
  const box = (x, y, width) => ({ x1: x, x2: x + width, y1: y - 8 * ratio, y2: y + 8 * ratio });
  places.forEach(({ x, y }) => taken.push(box(x - 6 * ratio, y, 12 * ratio)));
  const isFree = (one) =>
    one.x1 >= 0 &&
    one.x2 <= u.ctx.canvas.width &&
    one.y2 <= u.bbox.top + u.bbox.height + 8 * ratio &&
    !taken.some((each) => one.x1 < each.x2 && one.x2 > each.x1 && one.y1 < each.y2 && one.y2 > each.y1);
  return places.flatMap(({ name, isBold, x, y }) => {
    const width = name.length * 7 * ratio;
    const near = [0, 16, 32, 48].flatMap((away) => [
      ...[x + 12 * ratio, x - 12 * ratio - width].flatMap((left) =>
        [y - away * ratio, y + away * ratio].map((at) => [left, at]),
      ),
      ...[y - (away + 18) * ratio, y + (away + 18) * ratio].map((at) => [x - width / 2, at]),
    ]);
    const found = near.find(([left, middle]) => isFree(box(left, middle, width)));
    if (!found) return [];
    taken.push(box(...found, width));
    const to = Math.max(found[0], Math.min(x, found[0] + width));
    return [
      {
        name,
        isBold,
        x: found[0],
        y: found[1],
        from: Math.abs(found[1] - y) > 24 * ratio ? { x, y, to } : null,
      },
    ];
  });
}

/** On paper everything is light, and as wide as leaves its words readable. */
const root = document.documentElement;
let before = null;
addEventListener("beforeprint", () => {
  before = root.dataset.theme ?? "";
  root.dataset.theme = "light";
  hosts.forEach((host) => host.fit(PAPER));
});
addEventListener("afterprint", () => {
  root.dataset.theme = before;
  hosts.forEach((host) => host.fit());
});
