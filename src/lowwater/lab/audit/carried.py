"""What filled the prompts of a session, call by call, and what carrying it cost: results by tool, and everything else by kind."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from lowwater.core.accounts.tool_schemas import preamble_of
from lowwater.core.costs.prices import cost_at
from lowwater.core.messages import Message
from lowwater.lab.audit.calls import SUMMARY_KIND, AuditedCall
from lowwater.lab.audit.findings import Carried, PromptKinds
from lowwater.lab.audit.sizes import Sizes, characters
from lowwater.logs.recording import Recording

PREAMBLE, USER, ANSWERS, SUMMARIES = "(system prompt, tool definitions)", "(user)", "(answers)", "(summaries)"
"""What is carried besides the results of tools."""
DEFINITION = "definition of "
"""The prefix of the names under which tools' definitions are listed, if a log has them."""
_KINDS = {USER: "user", ANSWERS: "answers", SUMMARIES: "summaries"}
_UNKNOWN_TOOL = "(unknown tool)"


def carried_by(recording: Recording, calls: Sequence[AuditedCall], ratio: float) -> tuple[Carried, ...]:
    """Return what the prompts held, the dearest first; the input cost of each call is divided by size.

    `ratio` is tokens per character. Whatever no recorded message accounts for is the system prompt and the definitions of tools.
    """
    tokens: Counter[str] = Counter()
    cost: Counter[str] = Counter()
    for call, held in _prompts(recording, calls):
        assert call.usage is not None
        prompt = call.usage.prompt
        visible = {name: size * ratio for name, size in held.items()}
        whole = max(float(prompt), sum(visible.values()))
        visible[PREAMBLE] = whole - sum(visible.values())
        prices = call.prices
        spent = 0 if prices is None else cost_at(replace(call.usage, output=0), prices)
        for name, size in visible.items():
            share = size / whole if whole else 0.0
            tokens[name] += round(share * prompt)
            cost[name] += round(share * spent)
    made = Counter(
        call.name for each in recording.messages[recording.shared :] for call in each.message.calls
    )
    for name, part in _definitions(recording, calls, ratio).items():
        made[DEFINITION + name] = made[name]
        tokens[DEFINITION + name] = round(part * tokens[PREAMBLE])
        cost[DEFINITION + name] = round(part * cost[PREAMBLE])
    defined = [name for name in tokens if name.startswith(DEFINITION)]
    tokens[PREAMBLE] -= sum(tokens[name] for name in defined)
    cost[PREAMBLE] -= sum(cost[name] for name in defined)
    found = [
        Carried(name=name, calls=made[name], tokens=count, cost=cost[name])
        for name, count in tokens.items()
        if count
    ]
    return tuple(sorted(found, key=lambda one: (-one.cost, -one.tokens, one.name)))


def held_by(recording: Recording, calls: Sequence[AuditedCall], sizes: Sizes) -> dict[int, PromptKinds]:
    """Return what the prompts of the session's own calls held, by the index of the call's answer."""
    return {call.index: _kinds(call, held, sizes) for call, held in _prompts(recording, calls)}


def _kinds(call: AuditedCall, held: Mapping[str, int], sizes: Sizes) -> PromptKinds:
    assert call.usage is not None
    prompt = call.usage.prompt
    characters_of = {kind: held.get(name, 0) for name, kind in _KINDS.items()}
    characters_of["results"] = sum(held.values()) - sum(characters_of.values())
    # Where messages seem to hold more than was sent, all of them get a smaller share of it; the start stays.
    room = prompt - sizes.course.fixed if prompt > sizes.course.fixed else prompt
    share = min(sizes.ratio, room / max(1, sum(held.values())))
    found = {kind: int(size * share) for kind, size in characters_of.items()}
    return PromptKinds(start=prompt - sum(found.values()), **found)


def _definitions(recording: Recording, calls: Sequence[AuditedCall], ratio: float) -> dict[str, float]:
    """Return each tool definition's share of what no message accounts for; empty if definitions were not recorded."""
    found = preamble_of(recording.tools, (), system=0, count=lambda raw: round(len(raw) * ratio))
    first = next((call for call in calls if call.usage is not None), None)
    if not found.tools or first is None or first.usage is None:
        return {}
    said = sum(characters(each.message) for each in recording.messages[: first.index])
    whole = max(found.tool_tokens + len(recording.system) * ratio, first.usage.prompt - said * ratio, 1.0)
    shares = Counter[str]()
    for tool in found.tools:
        shares[tool.name] += tool.tokens
    return {name: size / whole for name, size in shares.items()}


def _prompts(
    recording: Recording, calls: Sequence[AuditedCall]
) -> Iterator[tuple[AuditedCall, Counter[str]]]:
    """Yield the session's own calls with how many characters of what their prompts held."""
    tools: dict[str, str] = {}
    held: Counter[str] = Counter()
    at = 0
    for call in calls:
        if call.compaction is not None and call.compaction.kind == "summary":
            held.clear()
            at = max(at, call.compaction.index)
        for each in recording.messages[at : call.index]:
            tools |= {made.id: made.name for made in each.message.calls}
            _hold(held, each.message, tools, is_summary=each.kind == SUMMARY_KIND)
        at = call.index
        if call.usage is not None and not call.copied:
            yield call, held


def _hold(held: Counter[str], message: Message, tools: dict[str, str], *, is_summary: bool) -> None:
    rest = characters(message)
    for result in message.results:
        held[tools.get(result.call_id, _UNKNOWN_TOOL)] += len(result.text)
        rest -= len(result.text)
    if rest:
        held[SUMMARIES if is_summary else ANSWERS if message.role == "assistant" else USER] += rest
