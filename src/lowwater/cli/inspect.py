"""`lowwater inspect`: what fills the window of a conversation in a file; with --explain, what would be done about it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Literal

import typer
from msgspec import Struct
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.command import AsJson, with_settings
from lowwater.cli.conversations import (
    ASSUMED_MODEL,
    FileArgument,
    FileFormat,
    FileModel,
    open_file,
    open_session,
)
from lowwater.cli.tables import figures_table, page_width, print_json, print_page
from lowwater.cli.wording import amount, on_one_line
from lowwater.core.accounts.contents import Contents, ContentShare, contents
from lowwater.core.accounts.tool_schemas import Preamble, ToolSchema, preamble_of
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.decisions import Compact
from lowwater.core.formats.files import Conversation
from lowwater.core.models.model import Model
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.policies.registry import POLICIES
from lowwater.core.tokens.counting import count_parts, count_preamble
from lowwater.core.wording import counted
from lowwater.protocols import Tokenizer
from lowwater.session.factories import counter_for
from lowwater.session.internals import internals
from lowwater.session.status import Status
from lowwater.settings import Settings
from lowwater.settings.resolve import Resolved

_WIDTH = 100
"""The most columns of a page of this command."""
_MOST_TOOLS = 12
"""The most tools that get a line each."""
_COLOURS = {
    "tools": "bright_black",
    "system": "blue",
    "user": "green",
    "assistant": "cyan",
    "thinking": "magenta",
    "tool calls": "yellow",
    "tool results": "red",
    "images": "bright_magenta",
    "documents": "bright_blue",
    "other": "white",
}


@with_settings
def inspect(
    file: FileArgument,
    *,
    explain: Annotated[
        bool, typer.Option("--explain", help="What each policy would do before the next call, and why.")
    ] = False,
    model: FileModel = "",
    format: FileFormat = "auto",
    json: AsJson = False,
    settings: Resolved,
) -> None:
    """Show what fills the window; with --explain, what would be done.

    The conversation is measured by kind of content, by tool and by age. With
    --explain: what the configured policy would do before the next call,
    step by step with its numbers, then a line for every other policy. Nothing
    is written.

    FILE holds a JSON array of messages, JSON lines with one message each,
    or the body of an API request, in OpenAI's chat or in Anthropic's format,
    plain or gzipped. Tokens are counted offline.

    lowwater inspect session.jsonl
    lowwater inspect session.jsonl --explain --policy guarded
    curl … | lowwater inspect - --model claude-opus-5-5 --json
    """
    opened = open_file(file, format)
    conversation = opened.conversation
    if explain:
        found = explained(conversation, model=model, settings=settings.settings)
        said, page = _explained_json(found), _explained_page(found)
        notes = [*opened.notes(), *([] if model or conversation.model else [ASSUMED_MODEL])]
    else:
        known = load_registry().find(model or conversation.model or "unknown")
        tokenizer = counter_for(model or conversation.model)
        filled = fill_of(conversation, tokenizer)
        said = _filled_json(conversation, filled, known, tokenizer)
        asked = model or conversation.model or "an unknown model"
        start = start_of(conversation, tokenizer)
        said |= {"before_first_message": start}
        begun = draw_preamble(
            start,
            filled.tokens,
            cost=lambda tokens: cost_of(Usage(cache_read=tokens), known),
            of="at each call that reads them from the cache",
        )
        page = chain(_filled_page(filled, known, asked), begun)
        notes = [*known.assumptions, *opened.notes()]
    if json:
        print_json(said | opened.as_json())
        return
    print_page([*page, *(Text(f"\n{note}", style="yellow") for note in notes)], most=_WIDTH)


# What fills the window


def start_of(conversation: Conversation, tokenizer: Tokenizer) -> Preamble:
    """Return what fills a request before its first message."""
    return preamble_of(
        conversation.tools,
        conversation.messages,
        system=count_preamble(conversation.system, b"", tokenizer),
        count=lambda tools: count_preamble(b"", tools, tokenizer),
    )


def fill_of(conversation: Conversation, tokenizer: Tokenizer) -> Contents:
    """Return what fills the window of a conversation."""
    return contents(
        conversation.messages,
        [count_parts(message, tokenizer) for message in conversation.messages],
        system_tokens=count_preamble(conversation.system, b"", tokenizer),
        tool_tokens=count_preamble(b"", conversation.tools, tokenizer),
    )


def _filled_page(filled: Contents, model: Model, asked: str) -> Iterator[RenderableType]:
    share = filled.tokens / model.context_length
    yield Text(
        f"{counted(filled.tokens, 'token')} in {counted(filled.messages, 'message')}, {counted(filled.turns, 'turn')}"
        f" · {share:.0%} of the {model.context_length:,} of {asked}",
        style="bold",
    )
    yield from draw_contents(filled, model.context_length, page_width(_WIDTH))


def _filled_json(
    conversation: Conversation, filled: Contents, model: Model, tokenizer: Tokenizer
) -> dict[str, object]:
    return {
        "format": conversation.format,
        "shape": conversation.shape,
        "model": model.name,
        "context_length": model.context_length,
        "assumptions": model.assumptions,
        "vocabulary": tokenizer.vocabulary,
        "contents": filled,
    }


def draw_contents(contents: Contents, context: int, width: int) -> Iterator[Table | Text]:
    """Yield the bar with its legend, then the tables by tool and age and the largest pieces."""
    yield _bar(contents, context, width)
    yield _legend(contents, context)
    if contents.by_tool:
        yield Text("\nby tool", style="bold")
        yield _shares(contents.by_tool[:10], contents.tokens, "result", width)
    yield Text("\nby age", style="bold")
    yield _shares(contents.by_age, contents.tokens, "message", width)
    yield Text("\nlargest", style="bold")
    table = _table()
    for piece in contents.largest:
        share = f"{piece.tokens / max(contents.tokens, 1):.0%}"
        table.add_row(
            piece.label, f"{piece.tokens:,}", share, Text(f"message {piece.index}", style="bright_black")
        )
    yield table
    yield from _problems(contents)


def draw_preamble(
    preamble: Preamble, whole: int, *, cost: Callable[[int], int | None], of: str, most: int = _MOST_TOOLS
) -> Iterator[Table | Text]:
    """Yield what fills the request before the first message; `cost` returns what a number of these tokens costs, `of` says per what."""
    if not preamble.tools:
        return
    yield Text("\nbefore the first message", style="bold")
    table = _table()
    rows = [("system prompt", preamble.system, "")] if preamble.system else []
    rows += [(tool.name, tool.tokens, _called(tool)) for tool in preamble.tools[:most]]
    if left := preamble.tools[most:]:
        rows.append((f"{counted(len(left), 'more tool')}", sum(tool.tokens for tool in left), ""))
    rows += [(f"all of {each.name}", each.tokens, _called(each)) for each in preamble.servers()]
    for name, tokens, said in rows:
        table.add_row(
            on_one_line(name, 34),
            f"{tokens:,}",
            f"{tokens / max(whole, 1):.0%}",
            Text(f"{said:<14}{amount(cost(tokens))}", style="bright_black"),
        )
    yield table
    unused = preamble.unused
    size = sum(tool.tokens for tool in unused)
    if unused:
        yield Text(
            f"{counted(len(unused), 'tool')} of {len(preamble.tools):,} were never called: leaving them out saves {size:,} tokens in every "
            f"request, {amount(cost(size))} {of}.",
            style="yellow",
        )


def _called(tool: ToolSchema) -> str:
    return counted(tool.calls, "call") if tool.calls else "never called"


def _bar(contents: Contents, context: int, width: int) -> Text:
    """Draw the whole window on one line; every kind that is there gets at least its share, rounded down."""
    bar = Text()
    whole = max(context, contents.tokens, 1)
    drawn = spent = 0
    for share in contents.by_kind:
        spent += share.tokens
        cells = round(width * spent / whole) - drawn
        bar.append("█" * cells, style=_COLOURS[share.label])
        drawn += cells
    bar.append("░" * (width - drawn), style="bright_black")
    return bar


def _legend(contents: Contents, context: int) -> Table:
    table = _table()
    for share in contents.by_kind:
        label = Text("■ ", style=_COLOURS[share.label]) + Text(share.label, style="default")
        pieces = Text(f"{share.count:,}", style="bright_black")
        table.add_row(label, f"{share.tokens:,}", f"{share.tokens / max(contents.tokens, 1):.0%}", pieces)
    free = context - contents.tokens
    if free >= 0:
        table.add_row(Text("░ free", style="bright_black"), f"{free:,}", "", "")
    else:
        table.add_row(Text("over the window", style="bold red"), f"{-free:,}", "", "")
    return table


def _shares(shares: Sequence[ContentShare], whole: int, unit: str, width: int) -> Table:
    table = _table()
    widest = max((share.tokens for share in shares), default=1) or 1
    room = max(8, width - 62)
    for share in shares:
        bar = "▇" * round(room * share.tokens / widest)
        said = Text(counted(share.count, unit), style="bright_black")
        table.add_row(share.label, f"{share.tokens:,}", f"{share.tokens / max(whole, 1):.0%}", said, bar)
    return table


def _table() -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(min_width=22, max_width=34, no_wrap=True)
    table.add_column(justify="right")
    table.add_column(justify="right", style="bright_black")
    table.add_column()
    table.add_column(style="red", no_wrap=True)
    return table


def _problems(contents: Contents) -> Iterator[Text]:
    broken = contents.unpaired
    for found, said in (
        (broken.calls, "calls were never answered"),
        (broken.results, "results answer no call"),
        (broken.repeated, "ids are used twice"),
    ):
        if found:
            places = ", ".join(f"message {index}" for index, _ in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            yield Text(f"\n{len(found)} {said}: {places}{more}", style="yellow")


# What would be done about it


class PolicyDecision(Struct, frozen=True, kw_only=True):
    """What one policy would do."""

    policy: str
    decision: Literal["compact", "keep"]
    why: str


class Explained(Struct, frozen=True, kw_only=True):
    """What would be done with a conversation: by the configured policy step by step, and by every policy in a line."""

    before: Status
    policy: str
    steps: str
    verdicts: tuple[PolicyDecision, ...]


def explained(conversation: Conversation, *, model: str, settings: Settings) -> Explained:
    """Return what every policy would do with a conversation before the next call."""
    chosen = settings.compression.policy
    before = open_session(conversation, model=model, policy=chosen, settings=settings).status()
    verdicts: list[PolicyDecision] = []
    steps = ""
    for policy in dict.fromkeys((*(own.name for own in POLICIES), chosen)):
        session = open_session(conversation, model=model, policy=policy, settings=settings)
        decision = internals(session).dry_run()
        verdicts.append(
            PolicyDecision(
                policy=policy,
                decision="compact" if isinstance(decision, Compact) else "keep",
                why=reason_sentence(decision.because),
            )
        )
        if policy == chosen:
            steps = session.explain()
    return Explained(before=before, policy=chosen, steps=steps, verdicts=tuple(verdicts))


def _explained_json(found: Explained) -> dict[str, object]:
    verdicts = {each.policy: {"decision": each.decision, "because": each.why} for each in found.verdicts}
    return {"status": found.before, "policy": found.policy, "explanation": found.steps, "policies": verdicts}


def _explained_page(found: Explained) -> Iterator[RenderableType]:
    before = found.before
    wall = "" if before.acts_at == "wall" else f", wall {before.wall:,}"
    sizes = f" on {before.model}: {before.acts_at} {before.threshold:,}{wall}, context {before.context:,}\n"
    yield Text.assemble((f"{before.prompt:,} tokens", "bold"), sizes)
    yield Text(found.policy, style="bold cyan")
    yield Text(found.steps)
    yield Text("\nother policies", style="bold")
    table = figures_table("", "", header=False)
    table.add_column(style="bright_black")
    for each in found.verdicts:
        if each.policy != found.policy:
            style = "yellow" if each.decision == "compact" else "green"
            table.add_row(each.policy, Text(each.decision, style=style), each.why)
    yield table
