// One session of a replay call by call: view size with events, tokens sent and not sent, dollars.

const EVENT_NAMES = {
  prune: "prune",
  summary: "summary",
  condense: "condensed summaries",
  shorten: "shortened results",
};
const LAYERS = [
  ["summarised", "summarised: not sent", 4, true],
  ["elided", "elided: not sent", 3, true],
  ["written", "written: new or rewritten", 2, false],
  ["read", "cached: read again", 1, false],
];
const MOST_LINES = 8;
const drawn = { session: 0, policy: null };

/** The policies whose lines are drawn at first: those of the table, the bound, and those that cost least and most. */
function besides(session) {
  const others = session.lines
    .filter((each) => look(each.name).kind === "course")
    .sort((one, other) => one.cost.at(-1) - other.cost.at(-1));
  const few = session.lines.length <= MOST_LINES ? others : [others[0], others.at(-1)].filter(Boolean);
  const bounds = session.lines.filter((each) => look(each.name).isBound);
  return new Set([...data.columns, ...[...few, ...bounds].map((each) => each.name)]);
}

function showSession(onpick) {
  const session = data.timelines[drawn.session];
  const one = session.lines.find((each) => each.name === drawn.policy);
  const base = {
    xs: session.at,
    base: "calls",
    baseSaid: counted,
    sync: "calls",
    title: (index) => `call ${grouped(session.at[index])}`,
  };
  const marks = one.marks.map((each) => {
    const name = EVENT_NAMES[each.mode] ?? each.mode;
    const others = each.count > 1 ? ` and ${each.count - 1} before` : "";
    const said = `${name}${others}: ${tokens(each.before)} → ${tokens(each.after)}`;
    return { x: session.at[each.index], kind: each.mode, name, said };
  });
  const thin = session.at.length < session.calls ? `${grouped(session.at.length)} of them drawn` : "";
  part("session-facts").textContent = [session.agent, session.model, `${grouped(session.calls)} calls`, thin]
    .filter(Boolean)
    .join(" · ");
  chart(part("views"), {
    ...base,
    label: `View size by call, with the events of ${one.name}`,
    kind: "steps",
    series: policyLines(session.lines, (each) =>
      each.read.map((value, index) => value + each.written[index]),
    ),
    marks,
    said: tokens,
    told: counted,
    onpick,
  });
  chart(part("spent"), {
    ...base,
    label: "Dollars so far, by call",
    kind: "lines",
    series: policyLines(session.lines, (each) => each.cost),
    said: roundly,
    told: exactly,
    onpick,
  });
  part("layers-title").textContent = `What was sent, and what was not: ${one.name}`;
  const total = (index) => sum(LAYERS.map(([key]) => one[key][index]));
  chart(part("layers"), {
    ...base,
    label: `Cached, written, elided and summarised tokens under ${one.name}`,
    kind: "areas",
    series: LAYERS.map(([key, name, hue, isGone]) => ({
      name,
      ys: one[key],
      colour: `var(--hue-${hue})`,
      fill: isGone ? `color-mix(in srgb, var(--hue-${hue}) 28%, var(--card))` : null,
    })),
    marks,
    title: (index) => `${base.title(index)}: ${counted(total(index))} in all`,
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
      before ? drawn.policy : (all.find((each) => look(each.name).isBold) ?? all[0]).name,
    ];
    for (const id of ["views", "spent"])
      part(id).off ??= new Set(
        all.map((each) => each.name).filter((name) => !besides(data.timelines[index]).has(name)),
      );
    sessions.value = index;
    policies.replaceChildren(...all.map((each) => make("option", { value: each.name }, each.name)));
    policies.value = drawn.policy;
    showSession(show);
  };
  const show = (name) => {
    drawn.policy = policies.value = name;
    for (const id of ["views", "spent"]) part(id).off.delete(name);
    showSession(show);
  };
  sessions.addEventListener("change", () => pick(Number(sessions.value)));
  policies.addEventListener("change", () => show(policies.value));
  pick(0);
  return pick;
}
