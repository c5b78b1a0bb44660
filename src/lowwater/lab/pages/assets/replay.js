// The replay: every policy beside the optimum, the frontier, dollars over the sessions, and the tables of both.

const DASHES = [null, "7 3", "2 3", "9 3 2 3"];
const OURS = "rent-or-buy";
const looks = new Map();
for (const policy of data.arms.flatMap((arm) => arm.policies)) {
  const others = [...looks.values()].filter((each) => !each.strong && !each.bound).length;
  if (looks.has(policy.name)) continue;
  if (policy.is_optimum) looks.set(policy.name, { hue: 8, bound: true });
  else if (policy.is_ours)
    looks.set(policy.name, { hue: 1, strong: true, dash: policy.kind === "full" ? "3 2" : null });
  else
    looks.set(policy.name, {
      kind: policy.kind,
      hue: (others % 7) + 2,
      dash: DASHES[Math.floor(others / 7) % DASHES.length],
    });
}
const look = (name) => looks.get(name) ?? { hue: 8 };
const chosen = { arm: 0, which: "matters", kind: "course", recall: "reach" };
const arm = () => data.arms[chosen.arm];
const played = () => arm().policies.filter((each) => !each.is_optimum);

const policyRows = (each) => [
  [null, "cost with rework", exactly(each.with_rework)],
  [null, "cost without", exactly(each.cost)],
  [null, "÷ optimum where it matters", times(each.mean)],
  [null, "95th percentile", times(each.p95)],
  [null, "worst", times(each.worst)],
  [null, "÷ optimum, all sessions", times(each.summed)],
  [null, "in view", share(each.in_view)],
  [null, "or one recall away", each.reach === null ? "not measured" : share(each.reach)],
  ...(each.unfit ? [[null, "sessions it did not fit", counted(each.unfit)]] : []),
];

function showRanges() {
  const ofKind = played().filter((each) => each.kind === chosen.kind);
  const ratio = (each) =>
    chosen.which === "matters" ? [each.mean, each.p95, each.worst] : [each.summed, null, null];
  const rows = ofKind
    .filter((each) => ratio(each)[0] !== null)
    .map((each) => {
      const [mean, p95, worst] = ratio(each);
      return {
        name: each.name,
        look: { ...look(each.name), hollow: !each.is_bounded },
        mean,
        p95,
        worst,
        rows: policyRows(each),
      };
    });
  if (!ofKind.length) return nothing(part("ranges"), "The real engine did not play with this cache.");
  if (!rows.length) return nothing(part("ranges"), "No session has an optimum to compare with.");
  return ranges(part("ranges"), {
    label: "Cost divided by the optimum, by policy",
    rows: rows.sort((one, other) => one.mean - other.mean),
  });
}

function showFrontier() {
  const byEngine = new Set(
    played()
      .filter((each) => each.kind === "full" && each.reach !== null)
      .map((each) => each.policy),
  );
  const shown = played().filter((each) => each.kind === "full" || !byEngine.has(each.policy));
  const height = (each) => (chosen.recall === "reach" ? (each.reach ?? each.in_view) : each.in_view);
  const found = shown.filter((each) => each.with_rework !== null && height(each) !== null && !each.unfit);
  if (!found.length)
    return nothing(
      part("frontier"),
      "Nothing was used again in these sessions, so that no recall could be measured.",
    );
  const best = arm().policies.find((each) => each.is_optimum);
  const unfit = shown.filter((each) => each.unfit).map((each) => each.name);
  part("frontier-caption").textContent = [
    "Filled: played by the real engine, with recall measured. Hollow: played in numbers; what left the view counts as gone.",
    unfit.length ? `Not shown, because some sessions did not fit under it: ${unfit.join(", ")}.` : "",
  ].join(" ");
  return points(part("frontier"), {
    label: "Cost and recall of each policy",
    base: "dollars, rework included",
    bound: best && best.with_rework !== null ? { x: best.with_rework, name: "optimum" } : null,
    points: found.map((each) => ({
      name: each.policy,
      title: each.name,
      x: each.with_rework,
      y: height(each),
      look: { ...look(each.name), hollow: each.reach === null },
      rows: policyRows(each),
    })),
  });
}

function showCumulated() {
  const { steps, cumulated } = arm();
  if (steps.length < 2)
    return nothing(
      part("cumulated"),
      "There are too few sessions to add up; their dollars are below, call by call.",
    );
  const series = cumulated.map((each) => ({ name: each.name, look: look(each.name), ys: each.cost }));
  return lines(part("cumulated"), part("cumulated-legend"), {
    label: "Cumulative dollars by policy over the sessions",
    xs: steps,
    series,
    base: "sessions, from the shortest to the longest",
    baseSaid: counted,
    said: roundly,
    told: exactly,
    height: 400,
    title: (index) => `the ${grouped(steps[index])} shortest sessions`,
  });
}

const present = (rows, all) =>
  all.filter((each) =>
    rows.some((row) => row[each.key] !== null && row[each.key] !== undefined && row[each.key] !== 0),
  );
const policyKind = (row) => (row.is_optimum ? "bound" : row.is_ours ? "ours" : "");

function showPolicies() {
  const rows = arm().policies;
  table(part("policies"), {
    caption: "Policies",
    rows,
    sort: ["with_rework", false],
    first: 40,
    kind: policyKind,
    columns: present(rows, [
      { key: "name", name: "policy", text: true, cell: (row) => titled(row.name, row.about) },
      { key: "with_rework", name: "cost with rework", said: dollars },
      { key: "cost", name: "without", said: dollars, hint: "Calls and summaries, without rework" },
      {
        key: "summed",
        name: "÷ optimum",
        said: times,
        hint: "Σ cost with rework ÷ Σ optimum over all sessions",
      },
      {
        key: "mean",
        name: "where it matters",
        said: times,
        hint: "Mean of cost ÷ optimum over the sessions where compaction matters",
      },
      { key: "p95", name: "p95", said: times },
      { key: "worst", name: "worst", said: times },
      { key: "in_view", name: "in view", said: share, hint: "Of what later calls used again" },
      { key: "reach", name: "or one recall", said: share },
      { key: "mean_view", name: "mean view", said: tokens },
      { key: "peak_view", name: "peak", said: tokens },
      {
        key: "unfit",
        name: "unfit",
        said: counted,
        hint: "Sessions in which a prompt did not fit the window; they count nowhere",
      },
    ]),
  });
  table(part("cadence"), {
    caption: "Cadence of each policy",
    rows,
    sort: ["events", false],
    first: 40,
    kind: policyKind,
    columns: [
      { key: "name", name: "policy", text: true },
      {
        key: "events",
        name: "events per 100 calls",
        said: (value) => (value === null ? "–" : grouped(value, 1)),
      },
      { key: "between", name: "calls between", said: (value) => (value === null ? "–" : grouped(value, 1)) },
      { key: "summaries", name: "summary calls", said: counted },
      { key: "reclaimed", name: "tokens an event", said: tokens },
      { key: "tokens", name: "prompt and summary tokens", said: tokens },
      {
        key: "earliest",
        name: "earliest change",
        said: counted,
        hint: "The earliest message that was changed",
      },
      {
        key: "prunes",
        name: "prunes per summary",
        said: (value) => (value === null ? "–" : grouped(value, 1)),
      },
    ],
  });
}

function showSessions(pick) {
  const timelines = new Map(data.timelines.map((each, index) => [`${each.agent} ${each.name}`, index]));
  const at = (row) => timelines.get(`${row.agent} ${row.name}`);
  const go = (row) => {
    pick(at(row));
    part("one-session").scrollIntoView();
    part("session").focus({ preventScroll: true });
  };
  const name = (row) =>
    titled(
      at(row) === undefined
        ? named(row.name)
        : make(
            "button",
            { type: "button", class: "link", title: row.name, onclick: () => go(row) },
            short(row.name, 22),
          ),
      [row.agent, row.model].filter(Boolean).join(" · "),
    );
  const policies = data.columns.map((policy, index) => ({ key: `p${index}`, name: policy, said: dollars }));
  const rows = data.sessions.map((each) => ({
    ...each,
    ...Object.fromEntries(each.costs.map((cost, index) => [`p${index}`, cost])),
  }));
  table(part("sessions"), {
    caption: "Sessions",
    rows,
    sort: ["optimum", true],
    first: 15,
    filter: ["name", "model", "agent"],
    columns: [
      { key: "name", name: "session", text: true, cell: name },
      { key: "calls", name: "calls", said: counted },
      { key: "peak", name: "largest view", said: tokens, hint: "Under any policy" },
      { key: "optimum", name: "optimum", said: dollars },
      ...policies,
      { key: "over", name: "ours ÷ optimum", hint: "Rent-or-buy", said: times },
      { key: "never_over", name: "never ÷ optimum", said: times },
    ],
  });
}

const ARMS = { neutral: "as its rules say", pessimistic: "unkind: evictions, calls to the wrong machine" };

function showArm() {
  [showRanges, showFrontier, showCumulated, showPolicies].forEach((show) => show());
}

/** A choice with its name before it, left out where there is nothing to choose. */
function ask(id, key, name, options, show) {
  part(id).hidden = options.length < 2;
  choice(part(id), name, options, chosen[key], (value) => {
    chosen[key] = value;
    show();
  });
}

function showReplay() {
  if (!data.arms.length)
    return document.querySelectorAll("main > section:not(:last-of-type), .only").forEach((each) => {
      each.hidden = true;
    });
  const kinds = [
    ["course", "played in numbers"],
    ["full", "played by the real engine"],
  ].filter(([kind]) => data.arms[0].policies.some((each) => each.kind === kind && !each.is_optimum));
  chosen.kind = kinds[0]?.[0] ?? "course";
  if (!data.arms[0].policies.some((each) => !each.is_optimum && each.mean !== null)) chosen.which = "all";
  ask(
    "arm",
    "arm",
    "The provider's cache",
    data.arms.map((each, index) => [index, `Cache ${ARMS[each.name] ?? each.name}`]),
    showArm,
  );
  ask(
    "which",
    "which",
    "Sessions",
    [
      ["matters", "where compaction matters"],
      ["all", "all sessions, summed"],
    ],
    showRanges,
  );
  ask("kind", "kind", "Played", kinds, showRanges);
  ask(
    "recall",
    "recall",
    "Recall",
    [
      ["reach", "in view or one recall away"],
      ["in_view", "in view"],
    ],
    showFrontier,
  );
  showArm();
  return showSessions(showTimelines());
}

showReplay();
