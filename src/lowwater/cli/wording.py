"""Formats times, amounts, sizes, models and findings for tables and sentences."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePath

from msgspec import Struct, structs
from rich.cells import cell_len, set_cell_size

from lowwater.core.accounts.advice import advice_dollars
from lowwater.core.accounts.figures import Figures
from lowwater.core.events import TurnRecord
from lowwater.core.models.model import (
    CacheRules,
    Cliff,
    MarkedPrefixes,
    Model,
    Prices,
    SteppedPrefixes,
    Uncached,
    Units,
)
from lowwater.core.models.registry import ModelMatch
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.lab.audit.findings import AuditedSession, Cause
from lowwater.settings.coercion import shown

UNKNOWN = "unknown"
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_SPAN_AGO = re.compile(r"\s*([0-9]{1,6})\s*([mhdw])\s*", re.IGNORECASE)
_SPAN_UNITS = ((60, 1, "s"), (3_600, 60, "min"), (2 * 86_400, 3_600, "h"), (60 * 86_400, 86_400, "days"))
_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}
_CONTROLS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
"""Replacements for characters that a terminal would interpret: control codes and direction overrides."""
_NANO_PER_DOLLAR = (
    1_000_000  # prices are in nano-dollars per 1,000 tokens: a dollar per million tokens is this many
)
_TIME_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
CAUSE_WORDS: dict[Cause, str] = {
    "first": "first call of a session",
    "compaction": "the client compacted",
    "model_changed": "the model changed",
    "expired": "the cache had expired",
    "start_changed": "system, tools or first message changed",
    "prefix_edited": "earlier messages were edited or dropped",
    "uncached": "the session recorded no use of a cache",
    "boundary": "ends of stored prefixes",
    "evicted": "evicted, or unknown",
}
"""The causes of cache misses; each text fits in 40 columns."""
SPENDING_WORDS = {
    "reads": "cache reads",
    "writes": "cache writes",
    "uncached": "plain input",
    "output": "output",
}


def printable(text: str) -> str:
    """Return untrusted text with control characters replaced, so that a terminal only shows it."""
    return text.translate(_CONTROLS)


def on_one_line(text: str, most: int) -> str:
    """Return a text on one line of at most `most` characters."""
    flat = " ".join(printable(text[: 4 * most]).split())
    return flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[: max(0, most - 1)]}…"


def fitted(text: str, columns: int) -> str:
    """Return a text padded or cut to exactly `columns` terminal columns."""
    if cell_len(text) <= columns:
        return set_cell_size(text, columns)
    return f"{set_cell_size(text, max(0, columns - 1))}…"


def from_the_end(text: str, columns: int) -> str:
    """Return at most `columns` characters of a text: its end, which distinguishes sessions in one folder."""
    return text if len(text) <= columns else f"…{text[-(columns - 1) :]}"


def setting_text(value: object) -> str:
    """Return a setting's value on one line: lists with commas, mappings as `key value`, without null fields."""
    match value:
        case ():
            return "none"
        case tuple() | list():
            return ", ".join(map(setting_text, value))
        case Struct():
            fields = structs.asdict(value).items()
            return ", ".join(f"{name} {setting_text(inner)}" for name, inner in fields if inner is not None)
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return shown(value)


def amount(nano: float | None) -> str:
    """Return nano-dollars as dollars, or `unknown`."""
    return UNKNOWN if nano is None else advice_dollars(nano)


def figure(number: float | None, *, places: int = 1) -> str:
    """Return a number with thousands separators, or a dash for None."""
    return "–" if number is None else f"{number:,.{places}f}" if isinstance(number, float) else f"{number:,}"


def share(part: float | None) -> str:
    """Return a share in percent, or a dash for None."""
    return "–" if part is None else f"{part:.0%}"


def short(tokens: int | None) -> str:
    """Return a number of tokens in at most five characters; a dash for None."""
    if tokens is None:
        return "–"
    if tokens >= 999_500:
        return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
    return f"{tokens / 1_000:.0f}K" if tokens >= 1_000 else str(tokens)


def span(seconds: float) -> str:
    """Return a duration in one unit: 45 s, 12 min, 7 h, 9 days."""
    seconds = max(0.0, seconds)
    for below, size, unit in _SPAN_UNITS:
        if seconds < below:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds // _SECONDS['w'])} weeks"


def ago(at: float, now: float) -> str:
    """Return how long ago a moment was."""
    return "just now" if now - at < 1 else f"{span(now - at)} ago"


def moment(at: float) -> str:
    """Return a timestamp in the user's time zone, to the minute."""
    return f"{_local(at):%Y-%m-%d %H:%M}"


def day(at: float) -> str:
    """Return the day of a timestamp in the user's time zone."""
    return f"{_local(at):%Y-%m-%d}"


def read_since(text: str, now: float) -> float:
    """Return the timestamp that `30d` (ago), `12h` or `2026-11-01` stands for, or raise BadInput."""
    found = _SPAN_AGO.fullmatch(text)
    if found:
        return now - int(found[1]) * _SECONDS[found[2].lower()]
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(
            f"{on_one_line(text, 40)!r} is no time: write 30d, 12h, 2w, or a day such as 2026-11-01"
        ) from None
    return (given if given.tzinfo else given.astimezone()).timestamp()


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at, tz=UTC).astimezone()


def dollars(price: int | None) -> str:
    """Return a price in dollars per million tokens, exactly; a dash for None."""
    return "–" if price is None else format((Decimal(price) / _NANO_PER_DOLLAR).normalize(), "f")


def ratio(price: int, prices: Prices) -> str:
    """Return a price as a multiple of the input price."""
    return f"{price / prices.input:.4g}"


def price_list(prices: Prices) -> str:
    """Return the prices with their names, in dollars per million tokens."""
    long = f", long write {dollars(prices.cache_write_long)}" if prices.cache_write_long is not None else ""
    return (
        f"input {dollars(prices.input)}, cache read {dollars(prices.cache_read)},"
        f" cache write {dollars(prices.cache_write)}{long}, output {dollars(prices.output)}"
    )


def ratio_list(prices: Prices) -> str:
    """Return the prices as multiples of the input price, with the letters used in docs/economics.md."""
    long = f", {ratio(prices.cache_write_long, prices)} long" if prices.cache_write_long is not None else ""
    return (
        f"r {ratio(prices.cache_read, prices)} (read), w {ratio(prices.cache_write, prices)}{long} (write),"
        f" ρ {ratio(prices.output, prices)} (output)"
    )


def cliff_sentence(cliff: Cliff) -> str:
    """Return a price cliff as a sentence."""
    where = f"From {cliff.above:,} tokens on" if cliff.inclusive else f"Above {cliff.above:,} tokens"
    return f"{where} the whole request is billed at {price_list(cliff.prices)}."


def duration(seconds: int) -> str:
    """Return a cache lifetime in its usual notation: 5m, 1h, 24h."""
    if seconds == 86_400:
        return "24h"
    return next(f"{seconds // size}{unit}" for size, unit in _TIME_UNITS if seconds % size == 0)


def lifetime(cache: CacheRules) -> str:
    """Return how long a cached prefix lives."""
    if cache.ttl is None:
        return "lifetime not published"
    return f"kept {duration(cache.ttl)}" + (f" or {duration(cache.ttl_long)}" if cache.ttl_long else "")


def matching(cache: CacheRules) -> str:
    """Return in a few words how the cache matches a prefix."""
    match cache.matching:
        case MarkedPrefixes(max_marks=most, lookback_blocks=blocks, lookback_marks=marks, unmarked=unmarked):
            back = f", each looks back {blocks} blocks" if blocks else ""
            newest = f", the newest {marks} are looked at" if marks else ""
            by_itself = {
                "uncached": "",
                "beside": ", one of them implicit",
                "instead": "; automatic without marks",
            }
            return f"up to {most} marks{back}{newest}{by_itself[unmarked]}"
        case SteppedPrefixes(tokens=None):
            return "automatic, longest prefix"
        case SteppedPrefixes(tokens=1):
            return "automatic, longest prefix to the token"
        case SteppedPrefixes(tokens=tokens):
            return f"automatic, longest prefix in steps of {tokens} tokens"
        case Units():
            return "automatic, whole stored units"
        case Uncached():
            return "no prompt cache"


def cache_sentence(cache: CacheRules) -> str:
    """Return the cache rules as sentences."""
    said = [f"{matching(cache)}; {lifetime(cache)}"]
    if cache.refreshed_by_hit:
        said[0] += ", a hit renews it"
    if cache.min_cacheable:
        said.append(f"a prefix below {cache.min_cacheable:,} tokens is not cached")
    if cache.output_cached is not None:
        said.append(
            "answers are cached as they are generated"
            if cache.output_cached
            else "answers are written at the next call"
        )
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in said)


def cached_until(records: Sequence[TurnRecord], model: Model) -> float | None:
    """Return when the last call's prefix should expire, by its time and the published lifetime; None if that is not known.

    It is 0 if the last call left nothing in the cache, or went to another model.
    """
    last = records[-1] if records else None
    if last is None or isinstance(model.cache.matching, Uncached):
        return None
    usage, rules = last.usage, model.cache
    only_marked = isinstance(rules.matching, MarkedPrefixes) and rules.matching.unmarked == "uncached"
    if last.model != model.name or (only_marked and usage is not None and usage.prompt == usage.uncached):
        return 0.0
    is_long = usage is not None and usage.cache_write_long > 0
    lifetime = rules.ttl_long if is_long and rules.ttl_long else rules.ttl
    return None if lifetime is None else last.at + lifetime


def cache_state(records: Sequence[TurnRecord], model: Model, now: float) -> str:
    """Return whether the last call's prefix is still cached, judged by timestamps and the published lifetime."""
    last = records[-1] if records else None
    if last is None or isinstance(model.cache.matching, Uncached):
        return ""
    called, until = f"the last call was {ago(last.at, now)}", cached_until(records, model)
    if last.model != model.name:
        return f"; cold: {called}, to {last.model}"
    if until == 0:
        return f"; cold: the last call, {ago(last.at, now)}, left nothing in it"
    if until is None:
        return f"; {called}, its lifetime is not published"
    left = until - now
    return f"; warm for {span(left)} more" if left >= 0 else f"; cold: {called}, kept {span(until - last.at)}"


def how_matched(match: ModelMatch) -> str:
    """Return a sentence on how a name was matched with a model."""
    dropped = f"; {match.suffix!r} does not change the model" if match.suffix else ""
    match match.how:
        case "listed":
            return f"Listed as {match.model.name}{dropped}."
        case "resold":
            return f"Listed as {match.model.name}, here through {match.model.provider}{dropped}."
        case "priced":
            return "Not listed by Lowwater, but by genai-prices."
        case "family":
            return f"Not listed; by its name one of the {match.model.family} family."
        case "unknown":
            return "Unknown: Lowwater works with the assumptions below."


def project_name(folder: str) -> str:
    """Return the last two parts of a project's folder, whichever system it is from; empty for none."""
    return on_one_line("/".join(re.split(r"[\\/]", folder.rstrip("\\/"))[-2:]), 60)


def session_name(session: AuditedSession) -> str:
    """Return a short name for a recorded session: its folder and the start of its id."""
    folder = PurePath(session.path).parent.name
    name = on_one_line(session.id, 60)
    short = name[:8] if len(name) > 24 else name
    kind = f" ({session.relation})" if session.relation else ""
    return f"{on_one_line(folder, 60)}/{short}{kind}" if folder else f"{short}{kind}"


def recall_json(totals: Sequence[Figures]) -> dict[str, int]:
    """Return how often recall was offered and used, as JSON values."""
    return {
        "offered": sum(total.recall_offered for total in totals),
        "used": sum(total.recall_used for total in totals),
        "found": sum(total.recall_found for total in totals),
        "named": sum(total.recall_named for total in totals),
    }


def recall_sentence(totals: Sequence[Figures]) -> str:
    """Say how often recall was offered and used, and how often the model then named what it was given."""
    told = recall_json(totals)
    said = f"offered in {counted(told['offered'], 'call')}, used {counted(told['used'], 'time')}"
    if not told["used"]:
        return said.replace("used 0 times", "never used")
    return f"{said}; {told['found']:,} found something, {told['named']:,} of them were named next"
