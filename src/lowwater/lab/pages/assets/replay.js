// The replay: every policy beside the optimum, the frontier, dollars over the sessions, and the tables of both.

const DASHES = ["solid", "dashed", "dotted"];
const looks = new Map();
for (const policy of data.arms.flatMap((arm) => arm.policies)) {
  const others = [...looks.values()].filter((each) => each.kind).length;
  if (looks.has(policy.name)) continue;
  if (policy.is_optimum) looks.set(policy.name, { colour: "var(--ink)", dash: "dashed", isBound: true });
  else if (policy.is_ours)
    looks.set(policy.name, {
      hue: 1,
      isBold: true,
      width: 3.2,
      dash: policy.kind === "full" ? "dotted" : "solid",
    });
  else
    looks.set(policy.name, {
      kind: policy.kind,
      hue: (others % 7) + 2,
      dash: DASHES[Math.floor(others / 7) % DASHES.length],
    });
}
const look = (name) => {
  const found = looks.get(name) ?? { hue: 8 };
  return { colour: `var(--hue-${found.hue})`, ...found };
};
const chosen = { arm: 0, recall: "reach" };
const arm = () => data.arms[chosen.arm];
const played = () => arm().policies.filter((each) => !each.is_optimum);

/** A policy's cost beside the optimum's: a dot at the mean, a band to the 95th percentile, a line to the worst. */
function range(rows, row) {
  const mean = (each) => each.mean ?? each.summed;
  const low = Math.min(1, ...rows.map(mean));
  const high = Math.max(1.1, ...rows.map((each) => Math.max(mean(each), each.p95 ?? 0) * 1.02));
  const at = (value) => (Math.min(value ?? mean(row), high) - low) / (high - low);
  const { hue } = look(row.name);
  return track(
    { kind: "one", hue, from: at(1) },
    { kind: row.worst > high ? "thin beyond" : "thin", hue, from: at(mean(row)), to: at(row.worst) },
    { kind: "band", hue, from: at(mean(row)), to: at(row.p95) },
    { kind: row.is_bounded ? "dot" : "dot hollow", hue, from: at(mean(row)) },
  );
}

function showRanges() {
  const rows = played().filter((each) => isKnown(each.summed));
  if (!rows.length) return nothing(part("ranges"), "No session has an optimum to compare with.");
  return table(part("ranges"), {
    caption: "Cost divided by the optimum, by policy",
    rows,
    sort: [rows.some((each) => isKnown(each.mean)) ? "mean" : "summed", false],
    first: 40,
    kind: policyKind,
    columns: present(rows, [
      { key: "name", name: "policy", text: true },
      { key: "", name: "", cell: (row) => range(rows, row) },
      { key: "mean", name: "mean", said: times, hint: "Over the sessions where compaction matters" },
      { key: "p95", name: "p95", said: times },
      { key: "worst", name: "worst", said: times },
      { key: "summed", name: "all", said: times, hint: "Σ cost with rework ÷ Σ optimum over all sessions" },
    ]),
  });
}

function showFrontier() {
  const byEngine = new Set(
    played()
      .filter((each) => each.kind === "full" && each.reach !== null)
      .map((each) => each.policy),
  );
  const shown = played().filter((each) => each.kind === "full" || !byEngine.has(each.policy));
  const kept = (each) => (chosen.recall === "reach" ? (each.reach ?? each.in_view) : each.in_view);
  const found = shown
    .filter((each) => each.with_rework !== null && kept(each) !== null && !each.unfit)
    .sort((one, other) => one.with_rework - other.with_rework);
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
  const low = lowest(found.map(kept));
  const points = found.map((each, at) => ({
    name: each.name,
    mark: kept(each) < low ? `${each.policy} ↓ ${share(kept(each))}` : each.policy,
    ys: found.map((_each, index) => (index === at ? Math.max(kept(each), low) : null)),
    dot: { size: look(each.name).isBold ? 16 : 11, isHollow: each.reach === null },
    ...look(each.name),
  }));
  const edge = found.map((_each, at) => Math.max(low, ...found.slice(0, at + 1).map(kept)));
  return chart(part("frontier"), {
    label: "Cost and recall of each policy",
    kind: "points",
    xs: found.map((each) => each.with_rework),
    series: [{ name: "nothing is cheaper and better", ys: edge, colour: "var(--soft)", width: 1 }, ...points],
    marks: best && best.with_rework !== null ? [{ x: best.with_rework, name: "optimum" }] : [],
    range: [low, 1 + (1 - low) * 0.03],
    height: 460,
    base: "dollars, rework included",
    baseSaid: roundly,
    said: (value) => `${Math.round(100 * value)} %`,
    told: () => "",
    whole: "",
    title: (index) =>
      `${found[index].name}: ${exactly(found[index].with_rework)}, ${share(kept(found[index]))} ${chosen.recall === "reach" ? "within reach" : "in view"}`,
  });
}

/** Where a scale of shares begins: below all of them, but for a few that lie far below the others. */
function lowest(shares) {
  const sorted = [...shares].sort((one, other) => one - other);
  const jump = sorted.findIndex(
    (each, index) => index && index <= sorted.length / 4 && each - sorted[index - 1] > 0.25,
  );
  return Math.max(0, Math.floor((sorted[Math.max(0, jump)] - 0.05) * 20) / 20);
}

/** The lines of policies, the highest at the end first; ours is drawn over the others. */
const policyLines = (all, ys) =>
  all
    .map((each) => ({ name: each.name, ys: ys(each), ...look(each.name) }))
    .sort((one, other) => (one.isBold ?? 0) - (other.isBold ?? 0) || other.ys.at(-1) - one.ys.at(-1));

function showCumulated() {
  const { steps, cumulated } = arm();
  if (steps.length < 2)
    return nothing(
      part("cumulated"),
      "There are too few sessions to add up; their dollars are below, call by call.",
    );
  return chart(part("cumulated"), {
    label: "Cumulative dollars by policy over the sessions",
    kind: "lines",
    xs: steps,
    series: policyLines(cumulated, (each) => each.cost),
    base: "sessions, from the shortest to the longest",
    baseSaid: counted,
    said: roundly,
    told: exactly,
    height: 400,
    title: (index) => `the ${grouped(steps[index])} shortest sessions`,
  });
}

/** The columns in which some row has a value. */
const present = (rows, all) =>
  all.filter(({ key }) => !key || rows.some((row) => isKnown(row[key]) && row[key] !== 0));
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
      {
        key: "rewritten",
        name: "tokens rewritten",
        said: tokens,
        hint: "Behind the first change of each compaction: what the provider had to cache again",
      },
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

function ask(id, key, name, options, show) {
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
  ask(
    "arm",
    "arm",
    "The provider's cache",
    data.arms.map((each, index) => [index, `Cache ${ARMS[each.name] ?? each.name}`]),
    showArm,
  );
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
