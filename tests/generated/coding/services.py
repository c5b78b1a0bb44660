"""What running services say: logs, JSON answers, tables."""

import json
from datetime import UTC, datetime

from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon
from tests.generated.naming import plural, snake
from tests.generated.words import CITIES, COMPANIES, PEOPLE, QUALITIES

_LEVELS = (("INFO", 70), ("DEBUG", 18), ("WARN", 8), ("ERROR", 4))


def write_log(lexicon: Lexicon, count: int, start: float, fault: str, trace: list[str]) -> str:
    """Return `count` log lines from `start` on; one of them, past the middle, is `fault` with its stack trace."""
    draw = lexicon.draw
    time = start
    units = [f"{lexicon.noun()}.{lexicon.noun()}" for _ in range(7)]
    requests = [f"req_{draw.hex(12)}" for _ in range(max(4, count // 6))]
    lines: list[str] = []
    at = count // 2 + draw.below(count // 2 + 1)
    for number in range(count):
        time += draw.skewed(0.08, 1.4, most=40)
        stamp = datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        request = requests[min(len(requests) - 1, number // 6 + draw.below(3))]
        if number == at:
            lines += [f"{stamp} ERROR [{units[0]}] {request} {fault}", *trace]
            continue
        level = draw.weighted(_LEVELS)
        lines.append(f"{stamp} {level:5} [{draw.one(units)}] {request} {lexicon.message()}{_facts(lexicon)}")
    return "\n".join(lines)


def _facts(lexicon: Lexicon) -> str:
    draw = lexicon.draw
    facts = ""
    for _ in range(draw.below(4)):
        value = draw.one(
            (str(draw.between(0, 99_999)), f"{draw.within(0, 900):.1f}ms", draw.one(QUALITIES), draw.hex(8))
        )
        facts += f" {snake(lexicon.local())}={value}"
    return facts


def write_json(lexicon: Lexicon, count: int, rare: str) -> str:
    """Return a JSON answer of an API with `count` items, one of which holds the id `rare`."""
    draw = lexicon.draw
    name = plural(lexicon.noun())
    keys = list(dict.fromkeys(snake(lexicon.thing()) for _ in range(draw.between(4, 9))))
    nested = snake(lexicon.thing())
    items = []
    for number in range(count):
        item: dict[str, object] = {"id": rare if number == count // 2 else f"{name[:3]}_{draw.hex(10)}"}
        item |= {key: _value(draw, key) for key in keys}
        item[nested] = {snake(lexicon.thing()): _value(draw, "inner"), "updated_at": _stamp(draw)}
        items.append(item)
    answer = {
        "data": items,
        "total": draw.between(count, count * 40),
        "next_cursor": draw.alnum(22) if draw.chance(0.6) else None,
    }
    return json.dumps(answer, ensure_ascii=False, indent=2 if draw.chance(0.75) else None)


def write_table(lexicon: Lexicon, rows: int) -> str:
    """Return the answer of a database shell."""
    draw = lexicon.draw
    names = ["id", *dict.fromkeys(snake(lexicon.thing()) for _ in range(draw.between(3, 5))), "updated_at"]
    table = [
        [
            str(draw.between(1_000, 999_999)),
            *(str(_value(draw, name)) for name in names[1:-1]),
            _stamp(draw)[:19],
        ]
        for _ in range(rows)
    ]
    widths = [max(len(cell) for cell in column) for column in zip(names, *table, strict=True)]
    lines = [" | ".join(name.center(width) for name, width in zip(names, widths, strict=True))]
    lines.append("-+-".join("-" * width for width in widths))
    lines += [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
    return "\n".join([*lines, f"({rows} rows)"])


def _stamp(draw: Draw) -> str:
    time = 1_770_000_000 + draw.below(8_000_000)
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")


def _value(draw: Draw, key: str) -> object:
    match (len(key) + draw.below(2)) % 7:
        case 0:
            return draw.one(PEOPLE)
        case 1:
            return draw.between(0, 250_000)
        case 2:
            return round(draw.within(0, 4_000), 2)
        case 3:
            return draw.one(QUALITIES)
        case 4:
            return draw.one(CITIES) if draw.chance(0.5) else draw.one(COMPANIES)
        case 5:
            return draw.chance(0.5)
        case _:
            return draw.hex(12)
