// Tables that sort by any column, filter by text, and show a part until asked for more.

/** A cell's text with smaller words below it. */
const titled = (title, words) => make("span", {}, title, words ? make("small", {}, words) : "");

/** A name of any length in the room of a cell. */
const named = (name) => make("span", { title: name }, short(name, 22));

/** Bars and dots on one line in a cell; each part begins and ends at a share of the cell's width. */
function track(...parts) {
  const drawn = parts.map(({ kind, hue, from, to = from }) => {
    const part = make("i", { class: kind, colour: `var(--hue-${hue})` });
    part.style.left = `${100 * from}%`;
    part.style.width = `${100 * (to - from)}%`;
    return part;
  });
  return make("div", { class: "track", "aria-hidden": true }, ...drawn);
}

/** A column of bars: as long as a row's `key` is great. */
function bars(key, rows, hue) {
  const most = Math.max(...rows.map((row) => row[key] ?? 0), 1);
  const cell = (row) => track({ kind: "bar", hue: hue(row), from: 0, to: Math.max(0, row[key] ?? 0) / most });
  return { key: "", name: "", cell };
}

/** A row of buttons of which one is pressed; hidden where there is nothing to choose. */
function choice(host, name, options, chosen, onchosen) {
  const press = (value) =>
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", options[index][0] === value));
  const buttons = options.map(([value, said]) => {
    const onclick = () => {
      press(value);
      onchosen(value);
    };
    return make("button", { type: "button", onclick }, said);
  });
  press(chosen);
  host.hidden = options.length < 2;
  host.replaceChildren(make("div", { class: "switch", role: "group", "aria-label": name }, ...buttons));
}

/**
 * Fill a table. `columns`: each `key`, `name`, `said` (value to text) and, where it is no number, `text: true`; a column
 * may have `cell(row)` for an element of its own, and one without a name cannot be sorted by. `sort` is `[key, isDescending]`.
 */
function table(host, { caption, columns, rows, sort, first = 25, filter = null, kind = () => "" }) {
  let [key, descending] = sort;
  let words = "";
  let most = first;

  const order = (chosen, isDescending) => {
    [key, descending] = [chosen, isDescending];
    show();
  };
  const compare = (one, other) => {
    const [a, b] = [one[key], other[key]];
    if (!isKnown(a) || !isKnown(b)) return isKnown(b) - isKnown(a);
    const sign = typeof a === "string" ? a.localeCompare(b) : a - b;
    return descending ? -sign : sign;
  };

  const headings = columns.map((each) => {
    const onclick = () => order(each.key, each.key === key ? !descending : !each.text);
    const button = each.name ? make("button", { type: "button", onclick }, each.name) : "";
    return make("th", { scope: "col", class: each.text ? "text" : null, title: each.hint ?? null }, button);
  });
  const onmore = () => {
    most += Math.max(100, first);
    show();
  };
  const more = make("button", { type: "button", class: "more", onclick: onmore });
  const status = make("span", { role: "status" });
  const body = make("tbody");

  const cell = (row, each) => {
    const kinds = [
      each.text ? "text" : "",
      each.name ? "" : "wide",
      each.name && !isKnown(row[each.key]) ? "none" : "",
    ];
    const shown = each.cell ? each.cell(row) : each.said ? each.said(row[each.key]) : (row[each.key] ?? "–");
    return make("td", { class: kinds.join(" ").trim() || null }, shown);
  };
  const hasWords = (row) =>
    filter.some((name) =>
      String(row[name] ?? "")
        .toLowerCase()
        .includes(words),
    );

  function show() {
    const found = rows.filter((row) => !words || hasWords(row)).sort(compare);
    headings.forEach((heading, index) => {
      const sorted = columns[index].key === key;
      if (sorted) heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    body.replaceChildren(
      ...found
        .slice(0, most)
        .map((row) => make("tr", { class: kind(row) || null }, ...columns.map((each) => cell(row, each)))),
    );
    const shown = `${grouped(Math.min(most, found.length))} of ${grouped(found.length)} shown`;
    status.textContent = found.length > most || words ? shown : "";
    more.hidden = found.length <= most;
    more.textContent = `Show more (${grouped(Math.max(0, found.length - most))})`;
  }

  const oninput = (event) => {
    words = event.target.value.trim().toLowerCase();
    most = first;
    show();
  };
  const search =
    filter &&
    make("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${caption}`, oninput });
  const tools = make("div", { class: "tools" }, search, status);
  const head = make("thead", {}, make("tr", {}, ...headings));
  const all = make("table", { "aria-label": caption }, head, body);
  host.replaceChildren(tools, make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption }, all), more);
  show();
}
