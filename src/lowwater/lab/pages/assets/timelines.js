// One session of a replay call by call: view size with events, tokens sent and not sent, dollars.

const EVENT_NAMES = {
  prune: "prune",
  summary: "summary",
  condense: "condensed summaries",
  shorten: "shortened results",
};
const LAYERS = [
  ["read", "cached: read again", 1],
  ["written", "written: new or rewritten", 2],
  ["elided", "elided: not sent", 3],
  ["summarised", "summarised: not sent", 4],
];
const MOST_LINES = 8;
const drawn = { session: 0, policy: null };

/** The policies whose lines are drawn at first: those of the table, the bound, and those that cost least and most. */
function besides(session) {
  const others = session.lines
    .filter((each) => !look(each.name).strong && !look(each.name).bound && look(each.name).kind === "course")
    .sort((one, other) => one.cost.at(-1) - other.cost.at(-1));
  const few = session.lines.length <= MOST_LINES ? others : [others[0], others.at(-1)].filter(Boolean);
  return new Set([
    ...data.columns,
    ...few.map((each) => each.name),
    ...session.lines.filter((each) => look(each.name).bound).map((each) => each.name),
  ]);
}

function showSession() {
  const session = data.timelines[drawn.session];
  const one = session.lines.find((each) => each.name === drawn.policy);
  const base = {
    xs: session.at,
    base: "calls",
    baseSaid: counted,
    title: (index) => `call ${grouped(session.at[index])}`,
  };
  const series = (values) =>
    session.lines.map((each) => ({ name: each.name, look: look(each.name), ys: values(each) }));
  const events = one.marks.map((each) => ({
    index: each.index,
    kind: each.mode,
    said: `${EVENT_NAMES[each.mode] ?? each.mode}${each.count > 1 ? ` and ${each.count - 1} before` : ""}: ${tokens(each.before)} → ${tokens(each.after)}`,
  }));
  const thin = session.at.length < session.calls ? `${grouped(session.at.length)} of them drawn` : "";
  part("session-facts").textContent = [session.agent, session.model, `${grouped(session.calls)} calls`, thin]
    .filter(Boolean)
    .join(" · ");
  lines(part("views"), part("views-legend"), {
    ...base,
    label: `View size by call, with the events of ${one.name}`,
    series: series((each) => each.read.map((value, index) => value + each.written[index])),
    of: one.name,
    events,
    eventNames: EVENT_NAMES,
    held: true,
    said: tokens,
    told: counted,
  });
  lines(part("spent"), part("spent-legend"), {
    ...base,
    label: "Dollars so far, by call",
    series: series((each) => each.cost),
    said: roundly,
    told: exactly,
  });
  part("layers-title").textContent = `What was sent, and what was not: ${one.name}`;
  areas(part("layers"), part("layers-legend"), {
    ...base,
    label: `Cached, written, elided and summarised tokens under ${one.name}`,
    layers: LAYERS.map(([key, name, hue]) => ({ name, look: { hue, hatch: hue > 2 }, ys: one[key] })),
    total: "in all",
    said: tokens,
    told: counted,
  });
}

/** Fill the pickers, and return what picks a session. */
function showTimelines() {
  const [sessions, policies] = [part("session"), part("policy")];
  if (!data.timelines.length) {
    part("one-session").hidden = true;
    return () => {};
  }
  const least = (each) => Math.min(...each.lines.map((line) => line.cost.at(-1)));
  sessions.replaceChildren(
    ...data.timelines.map((each, index) =>
      make(
        "option",
        { value: index },
        `${short(each.name, 40)} · ${grouped(each.calls)} calls · from ${dollars(least(each))}`,
      ),
    ),
  );
  const pick = (index) => {
    const { lines: all } = data.timelines[index];
    const before = all.some((each) => each.name === drawn.policy);
    [drawn.session, drawn.policy] = [
      index,
      before ? drawn.policy : (all.find((each) => look(each.name).strong) ?? all[0]).name,
    ];
    for (const id of ["views", "spent"])
      part(id).hiddenNames ??= new Set(
        all.map((each) => each.name).filter((name) => !besides(data.timelines[index]).has(name)),
      );
    sessions.value = index;
    policies.replaceChildren(...all.map((each) => make("option", { value: each.name }, each.name)));
    policies.value = drawn.policy;
    showSession();
  };
  const show = (name) => {
    drawn.policy = name;
    for (const id of ["views", "spent"]) part(id).hiddenNames.delete(name);
    showSession();
  };
  sessions.addEventListener("change", () => pick(Number(sessions.value)));
  policies.addEventListener("change", () => show(policies.value));
  pick(0);
  return pick;
}
