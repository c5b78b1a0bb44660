// Layers on top of each other: areas over calls, and columns by day.

/** Return each layer's lower and upper edge. */
function stacked(layers, count) {
  const sums = new Array(count).fill(0);
  return layers.map((layer) => {
    const low = [...sums];
    layer.ys.forEach((value, index) => {
      sums[index] += value;
    });
    return { layer, low, high: [...sums] };
  });
}

const layerLegend = (legend, layers) =>
  legend.replaceChildren(
    ...layers.map((each) =>
      make("li", {}, make("span", { class: "key" }, sample({ ...each.look, solid: true }), each.name)),
    ),
  );

const layerRows = (layers, index, told, total) => [
  ...[...layers]
    .reverse()
    .filter((each) => each.ys[index])
    .map((each) => [{ ...each.look, solid: true }, each.name, told(each.ys[index])]),
  [null, total, told(layers.reduce((sum, each) => sum + each.ys[index], 0))],
];

/** Draw areas: `plot` as for lines, with `layers` (each `name`, `look`, `ys`) and what their sum is called. */
function areas(host, legend, plot) {
  const edges = stacked(plot.layers, plot.xs.length);
  const drawing = (width) => {
    const wide = width > 640;
    const height = wide ? 320 : 260;
    const [left, right, top, bottom] = [58, width - 10, 14, height - 44];
    const y = scale(0, Math.max(...edges.at(-1).high, 1), bottom, top, 5, true);
    const x = scale(plot.xs[0], plot.xs.at(-1), left, right, wide ? 8 : 4);
    const places = plot.xs.map(x.at);
    const nodes = [...valueAxis(y, left, right, plot.said), ...baseAxis(x, bottom, plot.baseSaid, plot.base)];
    for (const { layer, low, high } of edges) {
      const over = path(places, high.map(y.at), true);
      const under = heldBack(places, low.map(y.at));
      nodes.push(
        draw("path", {
          class: layer.look.hatch ? `hatch-${layer.look.hue}` : `fill-${layer.look.hue}`,
          d: `${over}${under}Z`,
        }),
      );
      nodes.push(draw("path", { class: `edge line-${layer.look.hue}`, d: over }));
    }
    const stops = places.map((at, index) => ({
      x: at,
      y: (top + bottom) / 2,
      title: plot.title(index),
      rows: () => layerRows(plot.layers, index, plot.told, plot.total),
      mark: () => [draw("line", { class: "cursor", x1: at, x2: at, y1: top, y2: bottom })],
    }));
    return { height, nodes, stops, nearest: "x" };
  };
  chart(host, plot.label, drawing);
  layerLegend(legend, plot.layers);
}

/** The way back along a held edge, from its last point to its first. */
function heldBack(places, ys) {
  let said = `L${places.at(-1).toFixed(1)},${ys.at(-1).toFixed(1)}`;
  for (let index = places.length - 2; index >= 0; index -= 1)
    said += `V${ys[index].toFixed(1)}H${places[index].toFixed(1)}`;
  return said;
}

/** Draw columns: `plot` has `label`, `names` of the columns, `layers`, `said`, `told` and `total`. */
function columns(host, legend, plot) {
  const edges = stacked(plot.layers, plot.names.length);
  const drawing = (width) => {
    const wide = width > 640;
    const height = wide ? 300 : 240;
    const [left, right, top, bottom] = [58, width - 4, 14, height - 28];
    const y = scale(0, Math.max(...edges.at(-1).high, 1), bottom, top, 5, true);
    const step = (right - left) / plot.names.length;
    const thick = Math.max(1, Math.min(56, step * 0.8));
    const place = (index) => left + step * (index + 0.5);
    const nodes = [...valueAxis(y, left, right, plot.said), ...columnNames(plot.names, place, bottom, width)];
    for (const { layer, low, high } of edges) {
      plot.names.forEach((_name, index) => {
        if (!layer.ys[index]) return;
        nodes.push(
          draw("rect", {
            class: `column fill-${layer.look.hue}`,
            x: place(index) - thick / 2,
            width: thick,
            y: y.at(high[index]),
            height: Math.max(0.5, y.at(low[index]) - y.at(high[index])),
          }),
        );
      });
    }
    const stops = plot.names.map((name, index) => ({
      x: place(index),
      y: (top + bottom) / 2,
      title: plot.titles[index],
      rows: () => layerRows(plot.layers, index, plot.told, plot.total),
      mark: () => [
        draw("rect", {
          class: "ring",
          x: place(index) - thick / 2 - 2,
          width: thick + 4,
          y: y.at(edges.at(-1).high[index]) - 2,
          height: bottom - y.at(edges.at(-1).high[index]) + 2,
          rx: 2,
        }),
      ],
    }));
    return { height, nodes, stops, nearest: "x" };
  };
  chart(host, plot.label, drawing);
  layerLegend(legend, plot.layers);
}

function columnNames(names, place, bottom, width) {
  const every = Math.max(1, Math.ceil(names.length / Math.max(2, Math.floor((width - 60) / 76))));
  return names.flatMap((name, index) =>
    index % every ? [] : [draw("text", { x: place(index), y: bottom + 18, "text-anchor": "middle" }, name)],
  );
}
