// Elements, and numbers as people read them.

const SVG = "http://www.w3.org/2000/svg";
const data = JSON.parse(document.getElementById("data").textContent);
const part = (id) => document.getElementById(id);

/** Return an element; contents are always text or elements, never markup. */
function fill(element, attributes, contents) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...contents.filter((each) => each !== null));
  return element;
}

const make = (name, attributes = {}, ...contents) => fill(document.createElement(name), attributes, contents);
const draw = (name, attributes = {}, ...contents) =>
  fill(document.createElementNS(SVG, name), attributes, contents);

const grouped = (number, places = 0) =>
  number.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });

/** Nano-dollars as dollars, short; what is not known is said to be. */
function dollars(nano) {
  if (nano === null || nano === undefined) return "unknown";
  const value = nano / 1e9;
  const size = Math.abs(value);
  const places = size === 0 ? 0 : size >= 1000 ? 0 : size >= 0.095 ? 2 : size >= 0.00095 ? 4 : 6;
  return `${value < 0 ? "−" : ""}$${grouped(size, places)}`;
}

/** Nano-dollars on an axis: round values without cents. */
const roundly = (nano) => dollars(nano).replace(/\.00$/, "");

/** Nano-dollars as dollars, to the hundredth of a cent. */
function exactly(nano) {
  if (nano === null || nano === undefined) return "unknown";
  return `${nano < 0 ? "−" : ""}$${grouped(Math.abs(nano) / 1e9, 4)}`;
}

/** Tokens, short: 950, 12.3K, 4.1M. */
function tokens(number) {
  if (number === null || number === undefined) return "–";
  for (const [size, unit] of [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "K"],
  ]) {
    if (Math.abs(number) >= size * 0.9995) {
      const value = number / size;
      return `${grouped(value, Math.abs(value) >= 99.95 || value % 1 === 0 ? 0 : 1)}${unit}`;
    }
  }
  return grouped(Math.round(number));
}

const counted = (number) => (number === null || number === undefined ? "–" : grouped(number));
const share = (value) => (value === null || value === undefined ? "–" : `${grouped(100 * value, 1)} %`);
const times = (value) =>
  value === null || value === undefined ? "–" : `${grouped(value, value < 10 ? 3 : 1)} ×`;

/** Seconds since the epoch as a UTC minute. */
const minute = (seconds) =>
  seconds === null || seconds === undefined
    ? "–"
    : new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ");

/** Seconds as hours and minutes. */
function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${grouped(seconds / 3600, 1)} h` : `${grouped(seconds / 86400, 1)} days`;
}

const short = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`);
