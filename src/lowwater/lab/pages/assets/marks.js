// Single figures side by side: bars with their values, ranges of a ratio, and points on two scales.

/** Draw bars: `plot` has `label` and `bars`, each with `name`, `value`, `said`, `look` and `rows` for the tooltip. */
function bars(host, plot) {
  const drawing = (width) => {
    const wide = width > 460;
    const names = wide ? Math.min(190, Math.max(...plot.bars.map((bar) => bar.name.length)) * 7 + 14) : 0;
    const row = wide ? 34 : 48;
    const values = Math.max(...plot.bars.map((bar) => bar.said.length)) * 7.4 + 12;
    const x = scale(0, Math.max(...plot.bars.map((bar) => bar.value), 1), names, width - values, 4);
    const nodes = [];
    const stops = plot.bars.map((bar, index) => {
      const top = index * row + (wide ? 6 : 20);
      const long = Math.max(bar.value > 0 ? 2 : 0, x.at(bar.value) - names);
      nodes.push(
        draw(
          "text",
          wide
            ? { class: "name", x: names - 10, y: top + 15, "text-anchor": "end" }
            : { class: "name", x: 0, y: top - 4 },
          short(bar.name, wide ? 26 : 44),
        ),
      );
      nodes.push(
        draw("rect", {
          class: bar.look.hatch ? `hatch-${bar.look.hue}` : `fill-${bar.look.hue}`,
          x: names,
          y: top,
          width: long,
          height: 22,
          rx: 3,
        }),
      );
      nodes.push(draw("text", { class: "name", x: names + long + 8, y: top + 15 }, bar.said));
      return {
        x: names + long,
        y: top + 11,
        title: bar.name,
        rows: () => bar.rows,
        mark: () => [
          draw("rect", { class: "ring", x: names - 1, y: top - 1, width: long + 2, height: 24, rx: 4 }),
        ],
      };
    });
    nodes.push(draw("line", { class: "axis", x1: names, x2: names, y1: 0, y2: plot.bars.length * row }));
    return { height: plot.bars.length * row + 6, nodes, stops, nearest: "y" };
  };
  chart(host, plot.label, drawing);
}

/** The class of a point: filled, or hollow. */
const dot = (look) => (look.hollow ? `hollow line-${look.hue}` : `event fill-${look.hue}`);

/** Draw ranges from 1 on: a dot at the mean, a band to the 95th percentile, a line to the worst. */
function ranges(host, plot) {
  const drawing = (width) => {
    const wide = width > 560;
    const names = wide ? 176 : 0;
    const row = wide ? 30 : 46;
    const bottom = plot.rows.length * row + 8;
    const most =
      Math.max(...plot.rows.map((each) => each.mean), ...plot.rows.map((each) => each.p95 ?? 1)) * 1.04;
    const least = Math.min(1, Math.floor(20 * Math.min(...plot.rows.map((each) => each.mean))) / 20);
    const x = scale(least, Math.max(most, 1.1), names + 10, width - 66, wide ? 7 : 4);
    const clip = (value) => Math.min(value, x.high);
    const nodes = x.marks.map((value) =>
      draw("line", { class: "grid", x1: x.at(value), x2: x.at(value), y1: 0, y2: bottom }),
    );
    nodes.push(...baseAxis(x, bottom, (value) => `${grouped(value, 2)} ×`, "cost with rework ÷ optimum"));
    nodes.push(draw("line", { class: "bound", x1: x.at(1), x2: x.at(1), y1: 0, y2: bottom }));
    const stops = plot.rows.map((each, index) => {
      const y = index * row + (wide ? 19 : 30);
      const hue = each.look.hue;
      nodes.push(
        draw(
          "text",
          wide
            ? { class: each.look.strong ? "name ours" : "name", x: names - 8, y: y + 4, "text-anchor": "end" }
            : { class: each.look.strong ? "name ours halo" : "name halo", x: 4, y: y - 12 },
          short(each.name, 24),
        ),
      );
      if (each.worst !== null)
        nodes.push(
          draw("line", {
            class: `worst line-${hue}`,
            x1: x.at(each.mean),
            x2: x.at(clip(each.worst)),
            y1: y,
            y2: y,
          }),
        );
      if (each.worst > x.high)
        nodes.push(
          draw("path", { class: `edge line-${hue}`, d: `M${x.at(x.high) - 5},${y - 4} l5,4 l-5,4` }),
        );
      if (each.p95 !== null)
        nodes.push(
          draw("line", {
            class: `reach line-${hue}`,
            x1: x.at(each.mean),
            x2: x.at(clip(each.p95)),
            y1: y,
            y2: y,
          }),
        );
      nodes.push(
        draw("circle", {
          class: dot(each.look),
          cx: x.at(each.mean),
          cy: y,
          r: each.look.strong ? 7.5 : 5.5,
        }),
      );
      nodes.push(
        draw(
          "text",
          { class: each.look.strong ? "name ours" : "name", x: width, y: y + 4, "text-anchor": "end" },
          `${grouped(each.mean, 2)} ×`,
        ),
      );
      return {
        x: x.at(each.mean),
        y,
        title: each.name,
        rows: () => each.rows,
        mark: () => [
          draw("circle", { class: "ring", cx: x.at(each.mean), cy: y, r: each.look.strong ? 11 : 9 }),
        ],
      };
    });
    return { height: bottom + 44, nodes, stops, nearest: "y" };
  };
  chart(host, plot.label, drawing);
}

/** Draw points: `plot` has `points` (each `name`, `title`, `x`, `y`, `look`, `rows`), `bound` (an x with a name) and titles. */
function points(host, plot) {
  const drawing = (width) => {
    const wide = width > 640;
    const tall = wide ? 460 : 360;
    const [left, right, top, bottom] = [52, width - 14, 34, tall - 46];
    const xs = [...plot.points.map((each) => each.x), ...(plot.bound ? [plot.bound.x] : [])];
    const reach = Math.max(...xs) - Math.min(...xs) || Math.max(...xs) || 1;
    const x = scale(
      Math.max(0, Math.min(...xs) - reach * 0.06),
      Math.max(...xs) + reach * (wide ? 0.14 : 0.1),
      left,
      right,
      wide ? 7 : 4,
    );
    const low = lowest(plot.points.map((each) => each.y));
    const y = scale(low, 1, bottom, top);
    const height = (each) => y.at(Math.max(each.y, low));
    const nodes = [
      ...valueAxis(y, left, right, (value) => `${Math.round(100 * value)} %`),
      ...baseAxis(x, bottom, roundly, plot.base),
    ];
    if (plot.bound) {
      nodes.push(
        draw("line", { class: "bound", x1: x.at(plot.bound.x), x2: x.at(plot.bound.x), y1: top, y2: bottom }),
      );
      nodes.push(draw("text", { class: "halo", x: x.at(plot.bound.x) + 5, y: top - 8 }, plot.bound.name));
    }
    nodes.push(
      draw("path", {
        class: "lean",
        d: frontierPath(
          plot.points.filter((each) => each.y >= low),
          x,
          y,
          right,
        ),
      }),
    );
    const stops = plot.points.map((each) => ({
      x: x.at(each.x),
      y: height(each),
      title: each.title,
      rows: () => each.rows,
      mark: () => [draw("circle", { class: "ring", cx: x.at(each.x), cy: height(each), r: 12 })],
    }));
    const labels = plot.points.map((each) => ({
      ...each,
      name: each.y < low ? `${each.name} ↓ ${share(each.y)}` : each.name,
    }));
    plot.points.forEach((each, index) =>
      nodes.push(
        draw("circle", {
          class: dot(each.look),
          cx: stops[index].x,
          cy: stops[index].y,
          r: each.look.strong ? 9 : 6,
        }),
      ),
    );
    nodes.push(
      ...pointNames(labels, stops, { left, right: right + 12, top: top - 6, bottom }, wide ? 7 : 6.2),
    );
    return { height: tall, nodes, stops, nearest: "xy" };
  };
  chart(host, plot.label, drawing);
}

/** Where a scale of shares begins: below all of them, but for a few that lie far below the others. */
function lowest(shares) {
  const sorted = [...shares].sort((one, other) => one - other);
  const jump = sorted.findIndex(
    (each, index) => index && index <= sorted.length / 4 && each - sorted[index - 1] > 0.25,
  );
  return Math.max(0, Math.floor((sorted[Math.max(0, jump)] - 0.05) * 20) / 20);
}

/** The edge beyond which no point is both cheaper and better. */
function frontierPath(all, x, y, right) {
  let best = -Infinity;
  let said = "";
  for (const each of [...all].sort((one, other) => one.x - other.x || other.y - one.y)) {
    if (each.y <= best) continue;
    said += said ? `H${x.at(each.x)}V${y.at(each.y)}` : `M${x.at(each.x)},${y.at(each.y)}`;
    best = each.y;
  }
  return `${said}H${right}`;
}
