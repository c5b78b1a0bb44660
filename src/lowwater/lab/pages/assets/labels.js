// Names beside points, each in the nearest place that is free.

const overlap = (one, other) =>
  one.x1 < other.x2 && one.x2 > other.x1 && one.y1 < other.y2 && one.y2 > other.y1;
const within = (box, room) =>
  box.x1 >= room.left && box.x2 <= room.right && box.y1 >= room.top && box.y2 <= room.bottom;

/** Places for a name near a point, the nearest first. */
function* placesNear({ x, y }, width) {
  for (let away = 0; away <= 126; away += 14) {
    for (const left of [x + 13, x - 13 - width, x - width / 2, x + 13 + away, x - 13 - away - width]) {
      const apart = left < x && left + width > x ? away + 18 : away;
      for (const base of [y + 4 - apart, y + 4 + apart])
        yield { x1: left, x2: left + width, y1: base - 12, y2: base + 4 };
    }
  }
}

/** Return the names of points; those that matter choose first, and one that was moved far gets a line to its point. */
function pointNames(all, stops, room, letter) {
  const taken = stops.map(({ x, y }) => ({ x1: x - 8, x2: x + 8, y1: y - 8, y2: y + 8 }));
  const order = [...all.keys()].sort(
    (one, other) => Boolean(all[other].look.strong) - Boolean(all[one].look.strong),
  );
  return order.flatMap((index) => {
    const [{ name, look }, stop] = [all[index], stops[index]];
    const free = (box) =>
      within(box, room) && !taken.some((other, at) => at !== index && overlap(box, other));
    const box = [...placesNear(stop, name.length * letter + 4)].find(free);
    if (!box) return [];
    taken.push(box);
    const [x, y] = [Math.max(box.x1, Math.min(stop.x, box.x2)), (box.y1 + box.y2) / 2];
    const isFar = Math.hypot(x - stop.x, y - stop.y) > 26;
    const leader = isFar ? [draw("line", { class: "lean", x1: stop.x, y1: stop.y, x2: x, y2: y })] : [];
    const kind = `name halo${look.strong ? " ours" : ""}${letter < 7 ? " small" : ""}`;
    return [...leader, draw("text", { class: kind, x: box.x1, y: box.y2 - 4 }, name)];
  });
}
