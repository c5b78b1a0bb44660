// The audit: dollars by day and model, where they went, misses by cause, what could be saved, sessions, models.

function showPeriods() {
  const { unit, starts, spent } = data.periods;
  if (!starts.length) return nothing(part("days"), "No call has both a time and a price.");
  const name = (start) => (unit === "month" ? start.slice(0, 7) : start.slice(5));
  const title = (start) =>
    unit === "day" ? start : unit === "week" ? `Week from ${start}` : start.slice(0, 7);
  const total = (index) => sum(spent.map((each) => each.cost[index]));
  const series = spent.map((each, index) => ({
    name: each.model,
    ys: each.cost,
    colour: `var(--hue-${index + 1})`,
  }));
  return chart(part("days"), {
    label: `Dollars by ${unit} and model`,
    kind: "columns",
    xs: starts.map((_start, index) => index),
    series: series.reverse(),
    title: (index) => `${title(starts[index])}: ${exactly(total(index))} in all`,
    whole: `${exactly(sum(spent.flatMap((each) => each.cost)))} in all`,
    baseSaid: (index) => (starts[index] ? name(starts[index]) : ""),
    said: roundly,
    told: exactly,
  });
}

function showSpending() {
  const rows = data.spending;
  const total = sum(rows.map((each) => each.cost));
  if (!total) return nothing(part("spending"), "No call has a known price.");
  return table(part("spending"), {
    caption: "Dollars by kind of token",
    rows: rows.map((each) => ({ ...each, share: each.cost / total })),
    sort: ["cost", true],
    columns: [
      { key: "name", name: "kind", text: true },
      bars("cost", rows, () => 1),
      { key: "cost", name: "cost", said: dollars },
      { key: "share", name: "share", said: share },
      { key: "tokens", name: "tokens", said: tokens },
    ],
  });
}

function showMisses() {
  const rows = data.causes.filter((each) => each.misses);
  if (!rows.length) return nothing(part("misses"), "Every call read all it could from the cache.");
  return table(part("misses"), {
    caption: "Misses by cause",
    rows,
    sort: ["cost", true],
    columns: [
      { key: "name", name: "cause", text: true, cell: (row) => titled(row.name, row.means) },
      bars("cost", rows, (row) => (row.is_loss ? 2 : 8)),
      { key: "cost", name: "cost", said: dollars },
      { key: "misses", name: "calls", said: counted },
      { key: "tokens", name: "tokens", said: tokens, hint: "Tokens that were not read from the cache" },
    ],
  });
}

function showSavings() {
  const rows = data.savings;
  if (!rows.length) return nothing(part("savings"), "Nothing was estimated; the reason stands above.");
  const paid = rows[0].cost;
  const beside = (row) =>
    row.is_estimated ? `${row.cost < paid ? "−" : "+"}${dollars(Math.abs(row.cost - paid))}` : "–";
  return table(part("savings"), {
    caption: "What the same sessions would have cost",
    rows: rows.map((each, order) => ({ ...each, order, more: each.cost - paid })),
    sort: ["order", false],
    kind: (row) => (row.is_ours ? "ours" : ""),
    columns: [
      { key: "name", name: "policy", text: true },
      bars("cost", rows, (row) => (row.is_ours ? 1 : 8)),
      { key: "cost", name: "cost", said: dollars },
      { key: "more", name: "beside paid", cell: beside },
    ],
  });
}

/** A name that does something when it is pressed. */
const pressed = (name, title, onclick, most = 40) => make("button", { type: "button", class: "link", title: `${name}: ${title}`, onclick }, short(name, most));

function goTo(id) {
  part(id).scrollIntoView({ behavior: "auto", block: "start" });
  part(id).focus({ preventScroll: true });
}

function showProjects() {
  table(part("projects"), {
    caption: "Projects",
    rows: data.projects,
    sort: ["cost", true],
    first: 10,
    filter: ["name"],
    columns: [
      {
        key: "name",
        name: "project",
        text: true,
        cell: (row) =>
          pressed(row.name, "show its sessions", () => {
            showSessions(row.name);
            goTo("sessions-title");
          }),
      },
      bars("cost", data.projects, () => 1),
      { key: "cost", name: "cost", said: dollars },
      { key: "sessions", name: "sessions", said: counted },
      { key: "calls", name: "calls", said: counted },
      { key: "prompt", name: "input", said: tokens },
      { key: "hit", name: "cached", said: share },
      { key: "missed", name: "misses cost", said: dollars },
    ],
  });
}

const pick = { session: () => {} };

function showSessions(project = null) {
  const drawn = new Map(data.timelines.map((each, index) => [each.session, index]));
  part("sessions-title").replaceChildren(
    ...(project === null
      ? ["Sessions"]
      : [`Sessions of ${project} `, pressed("show all", "Show the sessions of every project", () => showSessions())]),
  );
  table(part("sessions"), {
    caption: "Sessions",
    rows: project === null ? data.sessions : data.sessions.filter((each) => each.project === project),
    sort: ["cost", true],
    first: 15,
    filter: ["name", "title", "project", "model", "agent", "relation"],
    columns: [
      {
        key: "name",
        name: "session",
        text: true,
        cell: (row) => {
          const open = () => {
            pick.session(drawn.get(row.name));
            goTo("session-title");
          };
          const name = drawn.has(row.name) ? pressed(row.title || row.name, "show its calls", open, row.title ? 48 : 22) : named(row.title || row.name);
          return titled(name, [row.title ? row.name : "", row.project, row.agent, row.model, row.relation].filter(Boolean).join(" · "));
        },
      },
      { key: "started", name: "started (UTC)", said: minute },
      { key: "calls", name: "calls", said: counted },
      { key: "prompt", name: "input", said: tokens },
      { key: "peak", name: "peak prompt", said: tokens },
      { key: "hit", name: "cached", said: share },
      { key: "missed", name: "misses cost", said: dollars },
      { key: "saving", name: "to save", said: dollars, hint: "Rent-or-buy against what was paid, estimated" },
      { key: "cost", name: "cost", said: dollars },
    ],
  });
}

const HELD = [
  ["start", "system prompt and tools", 8],
  ["user", "user", 5],
  ["answers", "answers and tool calls", 1],
  ["results", "tool results", 2],
  ["summaries", "summaries", 3],
];

/** One call: what its prompt held and how that differs from the call before, how it was billed, and what it missed. */
function showCall(one, at) {
  const miss = one.misses.find((each) => each.call === one.call[at]);
  const mark = one.marks.find((each) => each.call === one.call[at]);
  const isNext = at > 0 && one.call[at - 1] === one.call[at] - 1;
  const rows = HELD.map(([key, name], order) => ({
    order,
    name,
    tokens: one.held[key][at],
    more: isNext ? one.held[key][at] - one.held[key][at - 1] : null,
  }));
  const prompt = sum(rows.map((row) => row.tokens));
  const more = (value) => (isKnown(value) ? `${value < 0 ? "−" : "+"}${tokens(Math.abs(value))}` : "–");
  const facts = [
    ["when (UTC)", minute(one.at[at])],
    ["prompt", `${counted(prompt)} tokens: ${counted(one.read[at])} read from the cache, ${counted(one.written[at])} written to it, ${counted(one.uncached[at])} neither`],
    ["answer", `${counted(one.output[at])} tokens`],
    ["cost", dollars(one.cost[at])],
    ["missed", miss ? `${counted(miss.tokens)} tokens for ${dollars(miss.cost)}. ${miss.cause}: ${miss.means}` : at ? "nothing: it read all it could" : "nothing had been sent before"],
    ...(mark ? [["compaction before it", `${tokens(mark.before)} → ${tokens(mark.after)} tokens${mark.trigger ? ` (${mark.trigger})` : ""}`]] : []),
  ];
  const step = (to, name) => make("button", { type: "button", disabled: to < 0 || to >= one.call.length, onclick: () => showCall(one, to) }, name);
  const held = make("div");
  part("call").replaceChildren(
    make("h3", {}, `Call ${counted(one.call[at])}`),
    make("dl", { class: "facts" }, ...facts.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
    held,
    make("div", { class: "buttons" }, step(at - 1, "← Earlier"), step(at + 1, "Later →")),
  );
  table(held, {
    caption: `What the prompt of call ${counted(one.call[at])} held`,
    rows,
    sort: ["order", false],
    columns: [
      { key: "name", name: "kind", text: true },
      bars("tokens", rows, (row) => HELD[row.order][2]),
      { key: "tokens", name: "tokens", said: counted },
      { key: "more", name: "change", said: more, hint: "Since the call before" },
    ],
  });
  goTo("call");
}

/** One session's calls: what they sent, what they cost, and each miss. */
function showSession(index) {
  const one = data.timelines[index];
  part("session").value = index;
  const base = {
    xs: one.call,
    base: "calls",
    baseSaid: counted,
    sync: "calls",
    title: (at) => [`call ${grouped(one.call[at])}`, isKnown(one.at[at]) ? minute(one.at[at]) : ""].filter(Boolean).join(" · "),
    marks: one.marks.map((each) => ({
      x: each.call,
      kind: "summary",
      name: "compaction",
      said: `compaction${each.trigger ? ` (${each.trigger})` : ""}: ${tokens(each.before)} → ${tokens(each.after)}`,
    })),
  };
  const kinds = [
    ["uncached", "neither read nor written", 4],
    ["written", "written to the cache", 2],
    ["read", "read from the cache", 1],
  ];
  base.onopen = (at) => showCall(one, at);
  part("call").replaceChildren();
  chart(part("held"), {
    ...base,
    label: "Tokens of each prompt, by kind of content",
    kind: "areas",
    series: HELD.map(([key, name, hue]) => ({ name, ys: one.held[key], colour: `var(--hue-${hue})`, fill: null })).filter((each) => each.ys.some((value) => value > 0)),
    said: tokens,
    told: counted,
  });
  part("session-facts").textContent = `${grouped(one.call.at(-1) ?? 0)} calls · ${grouped(one.marks.length)} compactions of the client · ${grouped(one.misses.length)} misses`;
  chart(part("calls"), {
    ...base,
    label: "Tokens of each prompt, by how they were billed",
    kind: "areas",
    series: kinds.map(([key, name, hue]) => ({ name, ys: one[key], colour: `var(--hue-${hue})`, fill: null })),
    said: tokens,
    told: counted,
  });
  chart(part("dollars"), {
    ...base,
    label: "Dollars of each call",
    kind: "steps",
    series: [{ name: "cost", ys: one.cost.map((cost) => cost ?? 0), colour: "var(--hue-1)" }],
    said: roundly,
    told: exactly,
  });
  if (!one.misses.length) return nothing(part("session-misses"), "Every call but the first read all it could from the cache.");
  return table(part("session-misses"), {
    caption: "Misses of this session",
    rows: one.misses,
    sort: ["cost", true],
    first: 12,
    columns: [
      { key: "call", name: "call", said: counted, cell: (row) => pressed(counted(row.call), "show this call", () => showCall(one, one.call.indexOf(row.call))) },
      { key: "at", name: "when (UTC)", said: minute },
      { key: "cause", name: "cause", text: true, cell: (row) => titled(row.cause, row.means) },
      { key: "tokens", name: "tokens", said: tokens },
      { key: "cost", name: "cost", said: dollars },
    ],
  });
}

function showTimelines() {
  if (!data.timelines.length) {
    part("one-session").remove();
    return;
  }
  const titles = new Map(data.sessions.map((each) => [each.name, each.title]));
  part("session").replaceChildren(
    ...data.timelines.map((each, index) => make("option", { value: index }, `${short(titles.get(each.session) || each.session, 60)} · ${grouped(each.call.at(-1) ?? 0)} calls`)),
  );
  part("session").addEventListener("change", () => showSession(Number(part("session").value)));
  pick.session = showSession;
  showSession(0);
}

function showNatives() {
  if (!data.natives.length)
    return nothing(part("natives"), "The recordings tell of no compaction by the client itself.");
  return table(part("natives"), {
    caption: "The client's own compactions",
    rows: data.natives,
    sort: ["net", false],
    first: 12,
    filter: ["session", "trigger"],
    columns: [
      { key: "session", name: "session", text: true, cell: (row) => titled(named(row.session), row.trigger) },
      { key: "at", name: "when (UTC)", said: minute },
      { key: "before", name: "before", said: tokens },
      { key: "after", name: "after", said: tokens },
      { key: "served", name: "calls after", said: counted },
      {
        key: "price",
        name: "it cost",
        said: dollars,
        hint: "Rewriting the cache, and the summary (estimated)",
      },
      { key: "saved", name: "it saved", said: dollars },
      { key: "net", name: "net", said: dollars },
      {
        key: "earlier",
        name: "calls too late",
        said: counted,
        hint: "How many calls before it rent-or-buy would have acted",
      },
    ],
  });
}

function showDamage() {
  if (!data.damage.length) return nothing(part("damage"), "There is no compaction with a call after it.");
  const calls = (value) => (value === null ? "–" : value.toFixed(1));
  if (data.repeated.length)
    table(part("repeated"), {
      caption: "What was read or done again",
      rows: data.repeated,
      sort: ["session", false],
      first: 12,
      filter: ["session", "subject"],
      columns: [
        { key: "session", name: "session", text: true },
        { key: "call", name: "compaction before call", said: counted },
        { key: "subject", name: "path or command", text: true },
      ],
    });
  return table(part("damage"), {
    caption: "Repeated after compactions",
    rows: data.damage,
    sort: ["order", false],
    first: data.damage.filter((each) => each.is_telling).length,
    columns: [
      { key: "name", name: "client", text: true },
      { key: "compactions", name: "compactions", said: counted },
      { key: "repeating", name: "repeat", said: share },
      { key: "repeating_elsewhere", name: "elsewhere", said: share },
      { key: "repeated", name: "calls lost", said: calls, hint: "Calls that do nothing but repeat, per compaction" },
      { key: "repeated_elsewhere", name: "elsewhere", said: calls },
      { key: "until_work", name: "to work", said: calls, hint: "Calls before the first that changes something" },
      { key: "until_work_elsewhere", name: "elsewhere", said: calls },
      { key: "repeated_cost", name: "lost calls cost", said: dollars },
      {
        key: "extra_cost",
        name: "extra",
        said: dollars,
        hint: "What the calls until work went on cost beyond those elsewhere",
      },
    ],
  });
}

function showModels() {
  table(part("models"), {
    caption: "Models",
    rows: data.models,
    sort: ["cost", true],
    first: 30,
    columns: [
      { key: "model", name: "model", text: true },
      { key: "sessions", name: "sessions", said: counted },
      { key: "calls", name: "calls", said: counted },
      { key: "read", name: "cache reads", said: tokens },
      { key: "written", name: "cache writes", said: tokens },
      { key: "uncached", name: "uncached", said: tokens },
      { key: "output", name: "output", said: tokens },
      { key: "hit", name: "cached", said: share },
      { key: "unpriced", name: "no price", said: counted },
      { key: "cost", name: "cost", said: dollars },
    ],
  });
}

[showPeriods, showSpending, showMisses, showSavings, showProjects, showTimelines, () => showSessions(), showNatives, showDamage, showModels].forEach((show) =>
  show(),
);
