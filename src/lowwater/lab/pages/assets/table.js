// Tables that sort by any column, filter by text, and show a part until asked for more.

/** A cell's text with smaller words below it. */
const titled = (title, words) => make("span", {}, title, words ? make("small", {}, words) : "");

/** A name of any length in the room of a cell. */
const named = (name) => make("span", { title: name }, short(name, 22));

/**
 * Fill a table. `columns`: each `key`, `name`, `said` (value to text) and, where it is no number, `text: true`; a column
 * may have `cell(row)` for an element of its own. `sort` is `[key, isDescending]`.
 */
function table(host, { caption, columns: all, rows, sort, first = 25, filter = null, kind = () => "" }) {
  let [key, descending] = sort;
  let words = "";
  let most = first;
  const head = make("tr", {});
  const body = make("tbody", {});
  const status = make("span", { role: "status" });
  const more = make("button", {
    type: "button",
    class: "more",
    onclick: () => {
      most += Math.max(100, first);
      show();
    },
  });
  const by = make(
    "select",
    {
      "aria-label": "Sort by",
      onchange: () => order(by.value, !all.find((each) => each.key === by.value).text),
    },
    ...all.map((each) => make("option", { value: each.key }, each.name)),
  );

  function order(chosen, isDescending) {
    [key, descending] = [chosen, isDescending];
    show();
  }

  function compare(one, other) {
    const [a, b] = [one[key] ?? null, other[key] ?? null];
    if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
    const sign = typeof a === "string" ? a.localeCompare(b) : a - b;
    return descending ? -sign : sign;
  }

  const heading = (each) =>
    make(
      "th",
      {
        scope: "col",
        class: each.text ? "text" : null,
        "aria-sort": each.key === key ? (descending ? "descending" : "ascending") : null,
        title: each.hint ?? null,
      },
      make(
        "button",
        {
          type: "button",
          onclick: () => {
            order(each.key, each.key === key ? !descending : !each.text);
            [...head.children].find((cell) => cell.textContent === each.name).firstChild.focus();
          },
        },
        each.name,
      ),
    );

  const cell = (row, each) =>
    make(
      "td",
      {
        class:
          [each.text ? "text" : "", row[each.key] === null || row[each.key] === undefined ? "none" : ""]
            .join(" ")
            .trim() || null,
        "data-name": each.name,
      },
      each.cell ? each.cell(row) : each.said ? each.said(row[each.key]) : (row[each.key] ?? "–"),
    );

  function show() {
    const found = rows
      .filter(
        (row) =>
          !words ||
          filter.some((name) =>
            String(row[name] ?? "")
              .toLowerCase()
              .includes(words),
          ),
      )
      .sort(compare);
    head.replaceChildren(...all.map(heading));
    body.replaceChildren(
      ...found
        .slice(0, most)
        .map((row) => make("tr", { class: kind(row) || null }, ...all.map((each) => cell(row, each)))),
    );
    by.value = key;
    status.textContent =
      found.length > most || words
        ? `${grouped(Math.min(most, found.length))} of ${grouped(found.length)} shown`
        : "";
    more.hidden = found.length <= most;
    more.textContent = `Show more (${grouped(Math.max(0, found.length - most))})`;
  }

  const search = filter
    ? make("input", {
        type: "search",
        placeholder: "Filter",
        "aria-label": `Filter ${caption}`,
        oninput: (event) => {
          words = event.target.value.trim().toLowerCase();
          most = first;
          show();
        },
      })
    : null;
  const tools = make("div", { class: "tools" }, search, make("span", { class: "by" }, "Sort by", by), status);
  host.replaceChildren(tools, make("table", { "aria-label": caption }, make("thead", {}, head), body), more);
  show();
}
