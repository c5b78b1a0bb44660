// Elements, and numbers as people read them.

const data = JSON.parse(document.getElementById("data").textContent);
const part = (id) => document.getElementById(id);

/** Return an element, perhaps of a `colour`; contents are always text or elements, never markup. */
function make(name, attributes = {}, ...contents) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "colour") element.style.color = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...contents.filter((each) => each !== null));
  return element;
}

/** Say in a chart's or a table's place that there is nothing to show. */
function nothing(host, said) {
  host.plot?.destroy();
  host.plot = null;
  host.replaceChildren(make("p", { class: "caption" }, said));
}

const isKnown = (value) => value !== null && value !== undefined;
const grouped = (number, places = 0) =>
  number.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });

/** Nano-dollars as dollars, short; what is not known is said to be. */
function dollars(nano) {
  if (!isKnown(nano)) return "unknown";
  const value = nano / 1e9;
  const size = Math.abs(value);
  const places = size === 0 ? 0 : size >= 1000 ? 0 : size >= 0.095 ? 2 : size >= 0.00095 ? 4 : 6;
  return `${value < 0 ? "−" : ""}$${grouped(size, places)}`;
}

/** Nano-dollars on an axis: round values without cents. */
const roundly = (nano) => dollars(nano).replace(/\.00$/, "");

/** Nano-dollars as dollars, to the hundredth of a cent. */
const exactly = (nano) =>
  isKnown(nano) ? `${nano < 0 ? "−" : ""}$${grouped(Math.abs(nano) / 1e9, 4)}` : "unknown";

/** Tokens, short: 950, 12.3K, 4.1M. */
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const tokens = (number) => (isKnown(number) ? compact.format(number) : "–");

const counted = (number) => (isKnown(number) ? grouped(number) : "–");
const share = (value) => (isKnown(value) ? `${grouped(100 * value, 1)} %` : "–");
const times = (value) => (isKnown(value) ? `${grouped(value, value < 10 ? 3 : 1)} ×` : "–");

/** Seconds since the epoch as a UTC minute. */
const minute = (seconds) =>
  isKnown(seconds) ? new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ") : "–";

const short = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`);
