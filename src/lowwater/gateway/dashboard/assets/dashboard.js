// The dashboard: a list of sessions, one session as it goes on, and what can be done to it.

const view = part("view");
const saidLine = part("said");
const KINDS = [
  ["start", "system prompt and tools", 8],
  ["user", "user", 5],
  ["model", "model", 1],
  ["calls", "tool calls", 6],
  ["results", "tool results", 2],
  ["shortened", "shortened messages", 4],
  ["summaries", "summaries and pins", 3],
];
const OVER = {
  replaced: "a later compaction took its place before it had",
  undone: "it was undone before it had",
  ended: "the session ended before it had",
};
const SOURCES = { recognised: "recognised", user: "pinned by hand", model: "proposed by the model" };

let stream = null;
let ticking = null;
let shown = { name: null, words: "", rows: [] };
/** By how many seconds this browser's clock differs from the server's. */
let skew = 0;

// Asking the server

const PAGE_KEY = "lowwater-dashboard";

async function answered(path, given) {
  // The cookie alone opens nothing: browsers send it to programs at other ports of this host, too.
  const headers = { "x-lowwater-dashboard": localStorage.getItem(PAGE_KEY) || "none" };
  const options = given
    ? { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(given) }
    : { headers };
  const answer = await fetch(`/dashboard/api/${path}`, { ...options, credentials: "same-origin" });
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(told.error ?? `refused (${answer.status})`), { status: answer.status });
}

const ask = async (path, given) => (await answered(path, given)).json();

const at = (path, values) => `${path}?${new URLSearchParams(values)}`;

function say(words, isWrong = false) {
  saidLine.textContent = words;
  saidLine.classList.toggle("wrong", isWrong);
}

/** Run what a button does; tell what went wrong in words. */
async function attempt(doing, done = "") {
  try {
    await doing();
    if (done) say(done);
  } catch (error) {
    say(error.message, true);
    if (error.status === 401) lock();
  }
}

/** Ask a question in a dialog; returns the answer, or null if it was cancelled. */
function askUser({ title, more = "", label = null, yes = "OK", isDanger = false, kind = "text", expects = null }) {
  const dialog = part("ask");
  part("asked").textContent = title;
  part("asked-more").textContent = more;
  part("asked-label").hidden = label === null;
  part("asked-name").textContent = label ?? "";
  part("yes").textContent = yes;
  part("yes").classList.toggle("danger", isDanger);
  const answer = part("answer");
  answer.value = "";
  answer.type = kind;
  const check = () => (part("yes").disabled = expects !== null && answer.value !== expects);
  answer.oninput = check;
  check();
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      const given = answer.value;
      answer.value = "";
      resolve(dialog.returnValue === "yes" ? given : null);
    };
  });
}

// Getting in

function lock() {
  stop();
  document.title = "Lowwater dashboard";
  const token = make("input", { id: "token", type: "password", autocomplete: "off" });
  const onsubmit = (event) => {
    event.preventDefault();
    attempt(() => enter(token.value.replace(/^.*#token=/, "").trim()));
  };
  view.replaceChildren(
    make("h1", {}, "Lowwater dashboard"),
    make(
      "p",
      { class: "lead" },
      "Open the URL that Lowwater printed when it started: it holds a token. Or paste the token here.",
    ),
    make(
      "form",
      { class: "line", onsubmit },
      make("label", {}, "Token", token),
      make("button", { class: "main" }, "Open"),
    ),
  );
}

async function enter(token) {
  const { page_key } = await ask("login", { token });
  localStorage.setItem(PAGE_KEY, page_key);
  say("");
  await route();
}

part("unlock").addEventListener("click", async () => {
  const key = await askUser({
    title: "Show contents",
    more: "Figures are for whoever runs this gateway. Messages are shown to who has the key that the session's client uses. The key is compared and forgotten.",
    label: "API key",
    yes: "Show",
    kind: "password",
  });
  if (key !== null) await attempt(() => ask("unlock", { key }).then(route), "Contents of this key's sessions are shown.");
});

// Following

function stop() {
  stream?.close();
  stream = null;
  clearInterval(ticking);
}

function follow(name, changed) {
  stop();
  let first = true;
  stream = new EventSource(at("/dashboard/api/events", name ? { name } : {}));
  stream.onmessage = () => {
    if (!first) attempt(changed);
    first = false;
  };
}

const ago = (seconds) => {
  const past = Math.max(0, Date.now() / 1000 + skew - seconds);
  const [size, unit] =
    past < 60 ? [1, "s"] : past < 3600 ? [60, "min"] : past < 172800 ? [3600, "h"] : [86400, "days"];
  return `${Math.floor(past / size)} ${unit} ago`;
};

const left = (seconds) => {
  const [minutes, rest] = [Math.floor(seconds / 60), Math.floor(seconds % 60)];
  return minutes >= 60
    ? `${Math.floor(minutes / 60)} h ${minutes % 60} min`
    : `${minutes}:${String(rest).padStart(2, "0")}`;
};

/** What was saved beside a session that was never compacted: the figure of its tile, and the note below it. */
function saving(cost, untouched) {
  if (!isKnown(cost) || !isKnown(untouched)) return ["unknown"];
  if (!untouched || cost === untouched) return ["–", "nothing compacted so far"];
  const part = (untouched - cost) / untouched;
  return [dollars(untouched - cost), `${grouped(100 * part, 0)} % of ${dollars(untouched)}`];
}

// The list

// Whoever has gone on meanwhile does not want the page that was asked for before.
let visits = 0;

async function showList() {
  const visit = ++visits;
  const told = await ask(at("sessions", { words: shown.words }));
  if (visit !== visits) return;
  skew = told.now - Date.now() / 1000;
  document.title = "Lowwater dashboard";
  shown = { ...shown, name: null, rows: told.sessions, found: told.found };
  part("unlock").hidden = told.is_owner;
  const filter = make("input", { type: "search", id: "filter", value: shown.words, autocomplete: "off" });
  filter.value = shown.words;
  let waiting = null;
  filter.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      shown.words = filter.value;
      attempt(refreshList);
    }, 250);
  });
  view.replaceChildren(
    make("h1", {}, "Sessions"),
    make("p", { class: "lead", id: "lead" }),
    make("section", {}, make("div", { class: "line" }, make("label", {}, "Filter by name, model or title", filter)), make("div", { id: "rows" }), make("div", { class: "buttons", id: "more" })),
    searchBox(null),
  );
  fillList(told);
  follow(null, refreshList);
}

async function refreshList() {
  const visit = visits;
  const told = await ask(at("sessions", { words: shown.words }));
  if (visit !== visits) return;
  skew = told.now - Date.now() / 1000;
  shown.rows = told.sessions;
  fillList(told);
}

function fillList(told) {
  part("lead").textContent = told.total
    ? `${told.found < told.total ? `${counted(told.found)} of ` : ""}${counted(told.total)} ${told.total === 1 ? "session" : "sessions"}, the most recently changed first.`
    : "No session is kept here yet. Run an agent with `lowwater run -- claude`, or through this gateway.";
  drawRows();
}

function drawRows() {
  const rows = shown.rows.map((row) => ({ ...row, saved: isKnown(row.cost) && isKnown(row.untouched) ? row.untouched - row.cost : null }));
  const columns = [
    { key: "name", name: "session", text: true, cell: nameCell },
    { key: "model", name: "model", text: true, said: (name) => short(name, 26) },
    { key: "turns", name: "calls", said: counted },
    { key: "prompt", name: "prompt", said: tokens },
    { key: "compactions", name: "compactions", said: counted },
    { key: "cost", name: "cost", said: dollars },
    { key: "saved", name: "saved", said: dollars },
    { key: "changed_at", name: "changed", said: ago },
  ];
  if (rows.length)
    table(part("rows"), { caption: "Sessions", columns, rows, sort: ["changed_at", true], first: 100, kind: (row) => (row.deleted_at ? "gone" : "") });
  else nothing(part("rows"), shown.words ? "Nothing matches." : "");
  const more = make("button", { type: "button", onclick: () => attempt(loadMore) }, "Show more");
  part("more").replaceChildren(...(shown.rows.length < shown.found ? [more] : []));
}

async function loadMore() {
  const told = await ask(at("sessions", { words: shown.words, first: shown.rows.length }));
  shown.rows = [...shown.rows, ...told.sessions];
  drawRows();
}

function nameCell(row) {
  const link = make("a", { href: `#s=${encodeURIComponent(row.name)}`, title: row.name }, short(row.title || row.name, 44));
  const below = row.deleted_at ? "is being deleted" : [row.title ? row.name : "", row.source].filter(Boolean).join(" · ");
  return make("span", {}, link, make("small", {}, short(below, 48)));
}

// One session

async function showSession(name) {
  const visit = ++visits;
  const told = await ask(at("session", { name }));
  if (visit !== visits) return;
  skew = told.now - Date.now() / 1000;
  shown = { ...shown, name, boxes: new Map(), page: told, filling: null };
  document.title = `${told.title || told.name} · Lowwater`;
  part("unlock").hidden = told.sees;
  const actions = told.sees ? [actionsOf(name), pinsBox(), searchBox(name)] : [locked()];
  view.replaceChildren(
    make("a", { class: "back", href: "#" }, "← All sessions"),
    make("h1", {}, short(told.title || told.name, 120)),
    make("p", { class: "meta", id: "meta" }),
    make("ul", { class: "tiles", id: "tiles" }),
    make("section", {}, make("h2", {}, "What fills the window"), make("p", { class: "caption", id: "fill-says" }), make("div", { class: "chart", id: "fill" })),
    make("section", {}, make("h2", {}, "The bill so far"), make("p", { class: "caption" }, "What was paid, summaries included, beside an estimate of the same calls without any compaction."), make("div", { class: "chart", id: "bill" })),
    make("section", {}, make("h2", {}, "Compactions"), make("p", { class: "caption", id: "events-say" }), make("div", { id: "events" })),
    ...actions,
  );
  draw(told);
  await fillPins();
  if (visit !== visits) return;
  follow(name, refreshSession);
  ticking = setInterval(() => drawTiles(shown.page), 1000);
}

const locked = () => make("section", {}, make("p", { class: "caption" }, "Messages and actions need the key of the client that this session belongs to: “Show contents”, above."));

async function refreshSession() {
  const visit = visits;
  const told = await ask(at("session", { name: shown.name }));
  if (visit !== visits) return;
  skew = told.now - Date.now() / 1000;
  shown.page = told;
  draw(told);
  await fillPins();
}

function draw(told) {
  drawTiles(told);
  drawBill(told);
  drawEvents(told);
  attempt(() => drawFilling(told));
}

function tile(name, figure, note = "", extra = null) {
  return make("li", {}, make("div", { class: "name" }, name), make("div", { class: "figure" }, figure), make("div", { class: "note" }, note), extra);
}

function drawTiles(told) {
  const { sizes, costs, cache } = told;
  const now = Date.now() / 1000 + skew;
  const isLive = now - told.changed_at < 120;
  part("meta").replaceChildren(
    make("span", { class: isLive ? "live on" : "live", "aria-hidden": true }),
    `${isLive ? "live" : "quiet"} · ${told.model} · ${told.policy} · changed ${ago(told.changed_at)}` +
      (told.deleted_at ? ` · will be deleted in ${left(Math.max(0, told.deleted_at - now))}` : ""),
  );
  const full = make("div", { class: "bar-of" });
  const line = make("i");
  line.style.width = `${Math.min(100, (100 * sizes.prompt) / Math.max(1, sizes.context))}%`;
  const limit = make("i", { class: "limit" });
  limit.style.left = `${Math.min(99.5, (100 * sizes.threshold) / Math.max(1, sizes.context))}%`;
  full.append(line, limit);
  const removed = told.totals.reclaimed;
  part("tiles").replaceChildren(
    tile("prompt", tokens(sizes.prompt), `of ${tokens(sizes.context)}; ${sizes.threshold === sizes.wall ? "" : `${sizes.acts_at} at ${tokens(sizes.threshold)}, `}wall at ${tokens(sizes.wall)}`, full),
    tile("cache", ...cacheSaid(cache, now)),
    tile("bill so far", dollars(costs.total), costs.summaries ? `summaries ${dollars(costs.summaries)}` : `${counted(told.totals.turns)} calls`),
    tile("saved", ...saving(costs.total, costs.untouched)),
    tile("compactions", counted(told.compaction_count), removed ? `${tokens(removed)} tokens removed` : "nothing removed yet"),
    tile("in view", `${counted(told.messages)} of ${told.history < 1e4 ? counted(told.history) : tokens(told.history)}`, "messages; all can be recalled"),
  );
}

function cacheSaid(cache, now) {
  if (cache.is_empty) return ["empty", "the last call left nothing in it"];
  if (!isKnown(cache.until)) return ["unknown", "its lifetime is not known"];
  const seconds = cache.until - now;
  return seconds > 0 ? ["warm", `for ${left(seconds)} more`] : ["cold", "the next call writes it again"];
}

const marksOf = (told) =>
  told.compactions.map((event) => ({
    x: event.turn,
    name: event.summarizer ? "summary" : "prune",
    kind: event.summarizer ? "summary" : "prune",
    said: `compaction ${event.number}: ${counted(event.before)} → ${counted(event.after)} tokens`,
  }));

/** The sizes of the prompts at once; by kind as soon as the server has counted the messages. */
async function drawFilling(told) {
  if (!told.calls.index.length) {
    nothing(part("fill"), "Nothing was sent yet.");
    return;
  }
  part("fill-says").textContent =
    `Tokens of each prompt by kind, the newest ${tokens(told.sizes.prompt)}. ` +
    (told.decision ? `Last decision: ${told.decision.said}` : "");
  if (!shown.filling) drawPrompts(told, told.calls.index, [{ name: "prompt", ys: told.calls.prompt, colour: "var(--hue-8)" }]);
  const found = await ask(at("filling", { name: told.name }));
  if (shown.name !== told.name || !found.index.length) return;
  shown.filling = found;
  const series = KINDS.map(([kind, name, hue]) => ({ name, ys: found.kinds[kind], colour: `var(--hue-${hue})` }));
  drawPrompts(told, found.index, series.filter((each) => each.ys.some((value) => value > 0)));
}

function drawPrompts(told, xs, series) {
  chart(part("fill"), {
    label: "Tokens in the prompt by kind, at each call",
    kind: "areas",
    xs,
    title: (index) => `call ${xs[index]}`,
    said: tokens,
    told: counted,
    base: "call",
    baseSaid: (value) => `${value}`,
    series,
    marks: marksOf(told).filter((each) => each.x <= xs.at(-1)),
    sync: "calls",
  });
}

function drawBill(told) {
  const { calls } = told;
  if (!calls.index.length) {
    nothing(part("bill"), "Nothing was billed yet.");
    return;
  }
  chart(part("bill"), {
    label: "Dollars so far, at each call",
    kind: "lines",
    xs: calls.index,
    title: (index) => `call ${calls.index[index]}, ${minute(calls.at[index])}`,
    said: roundly,
    told: exactly,
    base: "call",
    baseSaid: (value) => `${value}`,
    series: [
      { name: "with Lowwater", ys: calls.paid, colour: "var(--hue-1)", isBold: true, width: 2.4 },
      { name: "never compacted", ys: calls.untouched, colour: "var(--hue-2)", dash: "dashed" },
    ],
    marks: marksOf(told).filter((each) => each.x <= calls.index.at(-1)),
    sync: "calls",
    height: 260,
  });
}

function drawEvents(told) {
  const newest = [...told.compactions].reverse();
  part("events-say").textContent = newest.length
    ? "The newest first. Open one for its reason, its price, and the prompt before and after it."
    : `Nothing was compacted yet. ${told.decision?.said ?? ""}`;
  // A box that is open stays as it is: somebody is reading it.
  const boxes = newest.slice(0, shown.most ?? 25).map((event) => {
    const known = shown.boxes.get(event.number);
    const box = known?.open ? known : eventBox(told, event);
    shown.boxes.set(event.number, box);
    return box;
  });
  part("events").replaceChildren(...boxes, ...moreEvents(told, newest));
}

function moreEvents(told, newest) {
  const most = shown.most ?? 25;
  if (newest.length <= most) return [];
  const onclick = () => {
    shown.most = most + 50;
    drawEvents(told);
  };
  return [make("button", { type: "button", onclick }, `Show more (${newest.length - most})`)];
}

function eventBox(told, event) {
  const what = event.summarizer ? "summary" : event.mode;
  const heading = make("summary", {}, `${event.number}. ${what}, `, make("b", {}, `${tokens(event.before)} → ${tokens(event.after)}`), make("span", { class: "soft" }, ` · before call ${event.turn} · ${ago(event.at)}`));
  const box = make("details", { class: "event" }, heading);
  const inside = make("div");
  const fill = () => {
    if (box.open && !inside.childElementCount)
      attempt(async () => inside.replaceChildren(...eventFacts(told, await ask(at("reason", { name: told.name, number: event.number })))));
  };
  box.addEventListener("toggle", fill);
  box.append(inside);
  return box;
}

function eventFacts(told, event) {
  const facts = [
    ["why", event.because.said],
    ["removed", event.phases.map((each) => `${each.mechanism} ${counted(each.removed)}`).join(", ") || counted(event.reclaimed)],
    ["messages", `${counted(event.messages_before)} → ${counted(event.messages_after)}`],
  ];
  if (event.summarizer) {
    const score = isKnown(event.score) ? `; score ${share(event.score)}` : "";
    facts.push(["summary", `${counted(event.summary_tokens)} tokens by ${event.summarizer}${score}; ${isKnown(event.summary_cost) ? dollars(event.summary_cost) : "cost unknown"}`]);
  }
  for (const each of event.rejected) facts.push(["refused", `${each.by}: ${each.said || each.code}${each.missing ? `, ${each.missing} references missing` : ""}`]);
  facts.push(["price", `expected ${dollars(event.predicted_price)}, to save ${dollars(event.predicted_saves)} at each later call`]);
  facts.push(["payback", paybackOf(event)]);
  const list = make("dl", { class: "facts" }, ...facts.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
  if (!told.sees) return [list];
  const sides = make("div");
  const look = () => attempt(async () => sides.replaceChildren(...sidesOf(await ask(at("compaction", { name: told.name, number: event.number })))));
  const undo = () => attempt(() => undoTo(told.name, event.number));
  return [
    list,
    make("div", { class: "buttons" }, make("button", { type: "button", onclick: look }, "Before and after"), make("button", { type: "button", onclick: undo }, "Undo to before this")),
    sides,
  ];
}

function paybackOf({ payback }) {
  if (!payback) return "nothing to pay back";
  if (isKnown(payback.turns)) return payback.turns ? `paid for itself after ${counted(payback.turns)} later calls` : "paid for itself at once";
  if (!isKnown(payback.price) || !isKnown(payback.saved)) return "cannot be told yet";
  const missing = `${dollars(Math.max(0, payback.price - payback.saved))} missing after ${counted(payback.counted)} later calls`;
  return payback.over === "no" ? `not yet: ${missing}` : `never: ${OVER[payback.over]}; ${missing}`;
}

async function undoTo(name, number) {
  const sure = await askUser({
    title: `Undo compaction ${number}?`,
    more: "The original messages are shown to the model again, those that came later stay. This can be undone, too: it is a checkpoint of its own.",
    yes: "Undo",
  });
  if (sure === null) return;
  await ask("undo", { name, to: `before-compaction-${number}` });
  say(`Compaction ${number} and later ones are undone.`);
  await refreshSession();
}

/** What a compaction changed: originals on the left, what stands for them on the right. */
function sidesOf(told) {
  const rows = told.changes.map((change) => {
    const [first, last] = [change.numbers[0]?.[0], change.numbers.at(-1)?.[1]];
    // What covers no message is the block of standing instructions.
    const which = !isKnown(first)
      ? "standing instructions"
      : first === last
        ? `message ${first}`
        : `messages ${first}–${last}`;
    if (change.kind === "kept" || change.kind === "appended")
      return make("p", { class: "soft" }, `${which}: unchanged, ${counted(change.after)} tokens`);
    if (change.kind === "dropped") return make("p", { class: "soft" }, `${which}: no longer shown, ${counted(change.before)} tokens`);
    const before = change.originals
      ? [make("div", { class: "originals", tabindex: 0, role: "group", "aria-label": "Originals" }, ...change.originals.map((each) => make("div", {}, make("h4", {}, `lw:${each.number} · ${each.who}`), make("div", { class: "quote" }, each.text))))]
      : change.parts.map((each) => make("div", {}, make("h4", {}, each.what), make("div", { class: "quote", tabindex: 0 }, each.was || "(nothing)")));
    const more = change.originals && change.messages > change.originals.length ? [make("p", { class: "soft" }, `and ${change.messages - change.originals.length} more messages`)] : [];
    const after = change.parts.map((each) => make("div", { class: "quote", tabindex: 0 }, each.now || "(removed)"));
    return make(
      "div",
      { class: "sides" },
      make("div", {}, make("h4", {}, `${which} before, ${counted(change.before)} tokens`), ...before, ...more),
      make("div", {}, make("h4", {}, `after, ${counted(change.after)} tokens`), ...after),
    );
  });
  const rest = told.left_out ? [make("p", { class: "soft" }, `${told.left_out} more changes`)] : [];
  return [...rows, ...rest];
}

// Pins, search, actions

const pinsBox = () => {
  const text = make("input", { id: "pin-text", autocomplete: "off" });
  const onsubmit = (event) => {
    event.preventDefault();
    attempt(async () => {
      await ask("pin", { name: shown.name, text: text.value });
      text.value = "";
      await refreshSession();
    }, "Pinned: it stands in every later view.");
  };
  return make(
    "section",
    {},
    make("h2", {}, "Standing instructions"),
    make("p", { class: "caption" }, "They stay in view word for word, whatever is compacted."),
    make("ul", { class: "hits", id: "pins" }),
    make("form", { class: "line", onsubmit }, make("label", {}, "Pin a text, or a message by its handle (lw:12)", text), make("button", {}, "Pin")),
  );
};

async function fillPins() {
  const host = part("pins");
  if (!host) return;
  const { pins } = await ask(at("pins", { name: shown.name }));
  const lines = pins.map((pin) => {
    const act = (path, done) => () =>
      attempt(async () => {
        await ask(path, { name: shown.name, text: pin.text });
        await refreshSession();
      }, done);
    const buttons =
      pin.status === "replaced"
        ? []
        : pin.status === "proposed"
          ? [make("button", { type: "button", onclick: act("pin", "Confirmed.") }, "Confirm"), make("button", { type: "button", onclick: act("unpin", "Dismissed.") }, "Dismiss")]
          : [make("button", { type: "button", onclick: act("unpin", "No longer in force.") }, "Unpin")];
    const about = [SOURCES[pin.source], pin.handle, pin.status === "in_force" ? "" : pin.status].filter(Boolean).join(" · ");
    return make("li", { class: "pin" }, make("div", {}, make("div", {}, pin.text), make("small", { class: "soft" }, about)), make("div", { class: "buttons" }, ...buttons));
  });
  host.replaceChildren(...(lines.length ? lines : [make("li", { class: "soft" }, "None so far.")]));
}

function searchBox(name) {
  const words = make("input", { type: "search", id: "search", autocomplete: "off" });
  const hits = make("ul", { class: "hits", "aria-live": "polite" });
  const onsubmit = (event) => {
    event.preventDefault();
    attempt(async () => {
      const told = await ask(at("search", name ? { words: words.value, name } : { words: words.value }));
      hits.replaceChildren(...(told.hits.length ? told.hits.map((hit) => hitLine(hit, name)) : [make("li", { class: "soft" }, "Nothing found.")]));
    });
  };
  return make(
    "section",
    {},
    make("h2", {}, name ? "Recall" : "Search all sessions"),
    make("p", { class: "caption" }, "Finds any message that was ever sent or received, also what the model is no longer shown."),
    make("form", { class: "line", onsubmit }, make("label", {}, "Words", words), make("button", {}, "Search")),
    hits,
  );
}

function hitLine(hit, name) {
  const text = make("div", { class: "quote", tabindex: 0 }, hit.text);
  const whole = () =>
    attempt(async () => {
      text.textContent = (await ask(at("message", { name: hit.session, number: hit.number }))).text;
    });
  const where = name ? [] : [make("a", { href: `#s=${encodeURIComponent(hit.session)}` }, short(hit.title || hit.session, 50)), " · "];
  return make(
    "li",
    {},
    make("div", { class: "soft" }, ...where, `lw:${hit.number} · ${hit.who} · ${counted(hit.tokens)} tokens`),
    text,
    make("button", { type: "button", onclick: whole }, "Whole message"),
  );
}

function actionsOf(name) {
  const focus = make("input", { id: "focus", autocomplete: "off" });
  const compact = (event) => {
    event.preventDefault();
    attempt(async () => {
      const told = await ask("compact", { name, focus: focus.value });
      focus.value = "";
      await refreshSession();
      say(told.ok ? `Compacted: ${counted(told.before)} → ${counted(told.after)} tokens.` : told.said, !told.ok);
    });
  };
  const remove = () => attempt(() => removeSession(name));
  const restore = () =>
    attempt(async () => {
      await ask("restore", { name });
      await showSession(name);
    }, "Restored.");
  const isGoing = Boolean(shown.page.deleted_at);
  return make(
    "section",
    {},
    make("h2", {}, "Actions"),
    make("form", { class: "line", onsubmit: compact }, make("label", {}, "Compact now; keep more about (optional)", focus), make("button", {}, "Compact")),
    make(
      "div",
      { class: "buttons" },
      make("button", { type: "button", id: "export", onclick: () => attempt(() => save(name)) }, "Export messages"),
      isGoing
        ? make("button", { type: "button", id: "restore", onclick: restore }, "Restore")
        : make("button", { type: "button", id: "delete", class: "danger", onclick: remove }, "Delete …"),
    ),
  );
}

async function save(name) {
  const answer = await answered(at("export", { name }));
  const [, file] = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition")) ?? [];
  const link = make("a", { href: URL.createObjectURL(await answer.blob()), download: file ?? "session.jsonl" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function removeSession(name) {
  const answer = await askUser({
    title: "Delete this session?",
    more: `Its messages, accounts and search index go. For ten minutes you can restore it here; if Lowwater ends before that, it is kept. To confirm, type its name: ${name}`,
    label: "Name",
    yes: "Delete",
    isDanger: true,
    expects: name,
  });
  if (answer === null) return;
  await ask("delete", { name, confirmed: answer });
  await showSession(name);
  say("It will be deleted in ten minutes. Until then, “Restore” takes that back.");
}

// Where we are

async function route() {
  const hash = decodeURIComponent(location.hash.slice(1));
  if (hash.startsWith("token=")) {
    const [token, session] = hash.slice("token=".length).split("&s=");
    // Without the token in it, the address can be shown and kept.
    history.replaceState(null, "", session ? `${location.pathname}#s=${encodeURIComponent(session)}` : location.pathname);
    await attempt(() => enter(token));
    if (!view.childElementCount) lock();
    return;
  }
  if (hash === "main") return;
  try {
    await (hash.startsWith("s=") ? showSession(hash.slice(2)) : showList());
  } catch (error) {
    if (error.status !== 401) say(error.message, true);
    if (error.status === 401) lock();
    else if (error.status === 404) location.hash = "";
  }
}

addEventListener("hashchange", () => {
  say("");
  route();
});
route();
