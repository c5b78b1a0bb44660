"""Shadow mode on every recorded session: not a byte changes, the untouched bill is foreseen, decisions are those of a live gateway.

    .venv/bin/python -m bench.shadow [--sessions N]
    .venv/bin/python -m bench.shadow --results FILE --minutes 8   # again and again, until all are played
    .venv/bin/python -m bench.shadow --results FILE --minutes 0 --write

Each session of the shared folder is sent through a real gateway as its client sent it: with its client's own compactions,
in the format of its model's provider, with marks where Claude Code sets them. It is played three times, with the options
of `lowwater run`:

1. in shadow mode, by a provider that reports the recorded usage. What a live session would take for the bill without
   compaction has to come within 2 % of the reported one. Sessions without recorded usage are left out here;
2. in shadow mode, by a provider that bills what it is sent by the rules of its cache;
3. live, by the same provider, until the gateway asks for its first summary, whose words nobody can foresee. Up to there
   everything has to be compacted in the same calls by the same mechanisms. Where both do the same for another reason it is
   counted, too: one token of rounding can decide between two reasons to keep.

In 1 and 2 bodies have to reach the provider as they were sent, and answers the client as they were given. What is played is
appended to the file of `--results`. The command ends with status 1 if a byte changed, a decision differs, or a bill of 1 is
foreseen with an error of over 2 %, leaving out the calls at which the provider's cache did not do what it promises: by the
recorded usage and times alone, it lost within its lifetime what the call before had stored, or still had half of it behind it
(`against_rules`). The table has the bills with and without these calls.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from itertools import islice, pairwise
from math import inf
from pathlib import Path

import httpx2
import msgspec
from msgspec import Struct

from bench.configurations import write_between
from bench.every_log import TRANSCRIPTS
from bench.gateway.replaying import SetClock, serving
from bench.gateway.simulated import FORMATS, HINT, Playing, SimulatedProvider
from bench.transcripts import ABSENT
from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.formats.codec import encode_messages, list_field
from lowwater.core.messages import Format, Message, ToolCall
from lowwater.core.models.model import Model, SteppedPrefixes
from lowwater.core.stored import Account
from lowwater.core.strict_json import read_fields, write_array, write_json, write_object
from lowwater.core.tokens.counting import rules_for
from lowwater.gateway.app import Gateway
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.lab.replay.live import filler_text
from lowwater.lab.replay.script import ASSUMED, PAUSE, REPLACEMENT_KIND, course_for, model_named, script_of
from lowwater.logs.importers import recordings
from lowwater.logs.recording import Recording
from lowwater.logs.recording_builder import is_empty
from lowwater.session.factories import counter_for
from lowwater.settings import OutputSettings, Settings
from lowwater.stores.memory import MemoryStore

MOST_OFF = 0.02
PATHS: Mapping[Format, str] = {format: path for path, format in FORMATS.items()}
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- bench.shadow -->\n", "<!-- end of bench.shadow -->\n"
_OUTPUT = 300
"""Output tokens of an answer whose usage was not recorded."""


class Call(Struct, frozen=True, kw_only=True):
    """One request of a client, with its answer."""

    raws: tuple[bytes, ...]
    """Its messages, without cache marks."""
    answer: bytes
    at: float
    usage: Usage | None
    """As recorded; None if it was not."""


class Conversation(Struct, frozen=True, kw_only=True):
    """A recorded session as its client sent it."""

    name: str
    folder: str
    agent: str
    model: Model
    format: Format
    tools: bytes
    system: str
    """As long as what the first call was billed for beyond its messages; its words were not recorded."""
    calls: tuple[Call, ...]


class Bills(Struct, frozen=True, kw_only=True):
    """The bill of the calls with recorded usage, in nano-dollars."""

    calls: int = 0
    reported: int = 0
    foreseen: int = 0
    """What a live session would have taken for it."""
    reported_after: int = 0
    """The same for the calls behind the first compaction that was decided in the shadow."""
    foreseen_after: int = 0
    against_rules: int = 0
    """Calls at which the provider's cache did not do what it promises."""
    reported_against: int = 0
    foreseen_against: int = 0
    would: int = 0
    """What they would have cost, summaries included."""

    @property
    def off(self) -> float:
        """The error of what was foreseen, as a share of what was reported."""
        return abs(self.foreseen - self.reported) / self.reported if self.reported else 0.0

    @property
    def by_rules(self) -> "Bills":
        """The same without the calls at which the cache did not do what it promises."""
        return Bills(
            calls=self.calls - self.against_rules,
            reported=self.reported - self.reported_against,
            foreseen=self.foreseen - self.foreseen_against,
        )


class Shown(Struct, frozen=True, kw_only=True):
    """What came of a session."""

    session: str
    folder: str
    calls: int
    requests_changed: int
    """Requests that did not reach the provider as they were sent."""
    answers_changed: int
    bills: Bills
    compared: int
    """Calls before the live gateway asked for its first summary."""
    otherwise: int
    """Of them, those at which the shadow did not compact as the live gateway did."""
    other_reasons: int = 0
    """Those at which both did the same for another reason: a token of rounding is enough for that."""
    compactions: int
    """Compactions among the decisions that were compared."""


class Decided(Struct, frozen=True, kw_only=True):
    """What was done before a call: by which mechanisms a compaction, if there was one, and why."""

    mechanisms: tuple[tuple[str, ...], ...]
    because: str


class Passed(Struct, frozen=True, kw_only=True):
    """What passed a gateway: how many requests and answers not as they were, and what was decided."""

    requests_changed: int
    answers_changed: int
    decisions: list[Decided]


def conversation_of(recording: Recording, folder: str) -> Conversation | None:
    """Return the requests of a recorded session; None if no call has an answer.

    As in a replay, consecutive messages of the assistant are one answer. After a compaction the list begins with its summary.
    """
    registry = load_registry()
    model = registry.find(recording.model or ASSUMED)
    if model.prices is None:
        model = model_named(ASSUMED, registry)
    name = model.name
    format: Format = (
        "anthropic"
        if name.startswith("claude")
        else "openai_responses"
        if recording.agent == "codex"
        else "openai_chat"
    )
    current: list[bytes] = []
    new: list[Message] = []
    calls: list[Call] = []
    said: list[Message] = []
    at, usage = 0.0, None

    def end_answer() -> None:
        nonlocal at
        if not said:
            return
        message = Message(role="assistant", parts=tuple(part for each in said for part in each.parts))
        raws = encode_messages([message], format)
        if not raws:
            # An answer of nothing but reasoning that the format cannot carry.
            said.clear()
            return
        raws = _said_in_blocks(raws, format)
        current.extend(encode_messages(new, format))
        answer = write_array(raws) if format == "openai_responses" else raws[0]
        calls.append(Call(raws=tuple(current), answer=answer, at=at, usage=usage))
        current.extend(raws)
        new.clear()
        said.clear()

    for each in recording.messages:
        if each.kind == REPLACEMENT_KIND:
            end_answer()
            current.clear()
            new[:] = [each.message]
        elif is_empty(each.message) or (each.message.role == "assistant" and not (new or said)):
            continue
        elif each.message.role == "assistant":
            if not said:
                asked = each.call.asked_at if each.call is not None else None
                time_of_call = each.at if asked is None else asked
                at = max(at, time_of_call) if time_of_call is not None else at + PAUSE
                usage = each.call.usage if each.call is not None else None
            said.append(each.message)
        else:
            end_answer()
            new.append(each.message)
    end_answer()
    if not calls:
        return None
    return Conversation(
        name=f"{recording.agent}/{recording.id}",
        folder=folder,
        agent=recording.agent,
        model=model,
        format=format,
        tools=_tools(recording, format),
        system=_system(recording, model),
        calls=tuple(calls),
    )


def against_rules(conversation: Conversation) -> frozenset[int]:
    """Return the calls before which the provider's cache did not do what it promises, by recorded usage and times alone.

    Within its lifetime it lost part of what the call before had stored, or behind it it still had more than half of that. Calls
    whose own time was not recorded are among them: a fork repeats its parent's calls under one time.
    """
    rules, calls = conversation.model.cache, conversation.calls
    times = Counter(call.at for call in calls)
    found = {at for at, call in enumerate(calls) if times[call.at] > 1}
    for at, (before, call) in enumerate(pairwise(calls), start=1):
        if before.usage is None or call.usage is None or call.raws[: len(before.raws)] != before.raws:
            continue
        written = before.usage.cache_write + before.usage.cache_write_long
        stores_all = isinstance(rules.matching, SteppedPrefixes)
        held = before.usage.prompt if stores_all else before.usage.cache_read + written
        ttl = rules.ttl_long if before.usage.cache_write_long else rules.ttl
        if not held or ttl is None:
            continue
        lost = held - call.usage.cache_read
        if lost > MOST_OFF * call.usage.prompt if call.at - before.at <= ttl else lost < held / 2:
            found.add(at)
    return frozenset(found)


def _said_in_blocks(raws: list[bytes], format: Format) -> list[bytes]:
    """Return an answer with its text in a block, as Anthropic always gives it."""
    fields = read_fields(raws[0])
    if format != "anthropic" or fields["content"][:1] != b'"':
        return raws
    block = b'[{"type":"text","text":' + fields["content"] + b"}]"
    return [write_object(fields | {"content": block})]


def _system(recording: Recording, model: Model) -> str:
    """Return a text in place of the system prompt and of the definitions of tools, of the size that they had."""
    script = script_of(recording)
    course = course_for(script, (), model=model.name, recorded=recording.model or model.name)
    return filler_text(round(course.fixed / rules_for(model.name).scale), counter_for(model.name))


def _tools(recording: Recording, format: Format) -> bytes:
    """Return definitions of the tools that were called, since those of the client were not recorded."""
    names = sorted(
        {
            part.name
            for each in recording.messages
            for part in each.message.parts
            if isinstance(part, ToolCall) and part.name
        }
    )
    schema = {"type": "object", "properties": {}}
    match format:
        case "anthropic":
            return write_json([{"name": name, "description": "", "input_schema": schema} for name in names])
        case "openai_chat":
            return write_json(
                [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]
            )
        case "openai_responses":
            return write_json([{"type": "function", "name": name, "parameters": schema} for name in names])


def body_of(conversation: Conversation, call: Call) -> bytes:
    """Return a request in a spelling that nobody would write again by accident, with marks as Claude Code sets them."""
    head: dict[str, object] = {"model": conversation.model.name}
    raws = list(call.raws)
    if conversation.format == "anthropic":
        head["max_tokens"] = 32_000
        is_long = call.usage is not None and call.usage.cache_write_long > 0
        mark = {"type": "ephemeral", "ttl": "1h"} if is_long else {"type": "ephemeral"}
        head["system"] = [{"type": "text", "text": conversation.system, "cache_control": mark}]
        users = [at for at, raw in enumerate(raws) if msgspec.json.decode(raw, type=_Role).role == "user"]
        for at in users[-2:]:
            raws[at] = _marked(raws[at], mark)
    elif conversation.format == "openai_responses":
        head |= {"instructions": conversation.system, "store": False}
    else:
        raws.insert(0, msgspec.json.encode({"role": "system", "content": conversation.system}))
    fields = msgspec.json.encode(head)[:-1]
    tools = b',\n "tools" : ' + conversation.tools if len(conversation.tools) > len("[]") else b""
    listed = f',\n "{list_field(conversation.format)}" : ['.encode()
    return fields + tools + listed + b", ".join(raws) + b"] }\n"


class _Role(Struct):
    role: str = ""


def _marked(raw: bytes, mark: Mapping[str, str]) -> bytes:
    message = msgspec.json.decode(raw)
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not parts:
        return raw
    parts[-1] = {**parts[-1], "cache_control": mark}
    return msgspec.json.encode({**message, "content": parts})


class Player:
    """Sends conversations through gateways in front of one simulated provider for each model."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._clock = SetClock()
        self._providers: dict[str, tuple[SimulatedProvider, str]] = {}
        self._client = stack.enter_context(httpx2.Client(timeout=300))

    def show(self, conversation: Conversation) -> Shown:
        """Play a conversation in all three ways."""
        by_rules = self._play(conversation, MemoryStore())
        passed, as_recorded = [by_rules], MemoryStore()
        if any(call.usage is not None for call in conversation.calls):
            passed.append(self._play(conversation, as_recorded, reports_recorded=True))
        live = self._play(conversation, MemoryStore(), is_shadow=False)
        pairs = list(zip(live.decisions, by_rules.decisions, strict=False))
        return Shown(
            session=conversation.name,
            folder=conversation.folder,
            calls=len(conversation.calls),
            requests_changed=sum(each.requests_changed for each in passed),
            answers_changed=sum(each.answers_changed for each in passed),
            bills=_bills(as_recorded, {conversation.calls[at].at for at in against_rules(conversation)}),
            compared=len(live.decisions),
            otherwise=sum(one.mechanisms != other.mechanisms for one, other in pairs),
            other_reasons=sum(
                one.mechanisms == other.mechanisms and one.because != other.because for one, other in pairs
            ),
            compactions=sum(len(one.mechanisms) for one, _ in pairs),
        )

    def _provider(self, model: Model) -> tuple[SimulatedProvider, str]:
        if model.name not in self._providers:
            provider = SimulatedProvider(model, self._clock)
            self._providers[model.name] = provider, self._stack.enter_context(serving(provider))
        return self._providers[model.name]

    def _play(
        self,
        conversation: Conversation,
        store: MemoryStore,
        *,
        is_shadow: bool = True,
        reports_recorded: bool = False,
    ) -> Passed:
        calls, format = conversation.calls, conversation.format
        provider, upstream = self._provider(conversation.model)
        playing = Playing(
            answers=[call.answer for call in calls],
            outputs=[call.usage.output if call.usage is not None else _OUTPUT for call in calls],
            format=format,
            reported=[call.usage for call in calls] if reports_recorded else None,
        )
        provider.playing[conversation.name] = playing
        options = GatewayOptions(
            anthropic_upstream=upstream,
            openai_upstream=upstream,
            settings=Settings(output=OutputSettings(quiet=True)),
            recall=True,
            summaries="api-keys",
            shadow=is_shadow,
        )
        headers = {"content-type": "application/json", "x-session-id": "one", HINT: conversation.name}
        headers |= {"x-api-key": "sk-one"} if format == "anthropic" else {"authorization": "Bearer sk-one"}
        answers_changed, decisions, known = 0, list[Decided](), provider.summaries
        seen = 0
        with served(Gateway(options, store, clock=self._clock)) as url:
            for call in calls:
                self._clock.at = call.at
                body = body_of(conversation, call)
                playing.sent = body if is_shadow else b""
                answer = self._client.post(url + PATHS[format], content=body, headers=headers)
                answer.raise_for_status()
                answers_changed += answer.content != playing.given
                made = [event for account in store.accounts() for event in _compactions(account)]
                decisions.append(
                    Decided(
                        mechanisms=tuple(each.mechanisms for each in made[seen:]),
                        because=answer.headers.get("x-lowwater-decision", ""),
                    )
                )
                seen = len(made)
                if not is_shadow and provider.summaries > known:
                    break
        del provider.playing[conversation.name]
        return Passed(requests_changed=playing.changed, answers_changed=answers_changed, decisions=decisions)


def _compactions(account: Account) -> list[Compaction]:
    return [event for event in account.events if isinstance(event, Compaction)]


def _bills(store: MemoryStore, against_rules: Collection[float]) -> Bills:
    """Return what the calls of all sessions were billed, and what a live session would have taken for it.

    `against_rules` has the times of the calls at which the cache did not do what it promises.
    """
    reported = foreseen = reported_after = foreseen_after = would = billed = 0
    against: list[TurnRecord] = []
    for account in store.accounts():
        would += sum(each.cost or 0 for each in _compactions(account))
        first = min(
            (
                turn
                for turn, event in zip(account.turns_before or (), account.events, strict=True)
                if isinstance(event, Compaction)
            ),
            default=len(account.records),
        )
        for turn, record in enumerate(account.records):
            if record.untouched is None or record.estimated is None or record.cost is None:
                continue
            billed, would = billed + 1, would + record.cost
            reported, foreseen = reported + record.untouched, foreseen + record.estimated
            if record.at in against_rules:
                against.append(record)
            if turn >= first:
                reported_after, foreseen_after = (
                    reported_after + record.untouched,
                    foreseen_after + record.estimated,
                )
    return Bills(
        calls=billed,
        reported=reported,
        foreseen=foreseen,
        reported_after=reported_after,
        foreseen_after=foreseen_after,
        against_rules=len(against),
        reported_against=sum(record.untouched or 0 for record in against),
        foreseen_against=sum(record.estimated or 0 for record in against),
        would=would,
    )


def conversations() -> Iterator[Conversation]:
    """Yield every recorded session of the shared folder once, in an order that is random and the same every time.

    A session that is there both as its client wrote it and in the canonical form is played as its client wrote it.
    """
    folders = sorted(TRANSCRIPTS.iterdir(), key=lambda path: (path.name == "canonical", path.name))
    found: dict[tuple[str, str], tuple[Recording, str]] = {}
    for folder in folders:
        if folder.is_dir() and folder.name != "licences":
            for recording in recordings([folder]):
                where = Path(recording.path).parent.name if folder.name == "canonical" else folder.name
                found.setdefault((recording.agent, recording.id), (recording, where))
    for _, (recording, where) in sorted(
        found.items(), key=lambda each: blake2b("/".join(each[0]).encode()).digest()
    ):
        conversation = conversation_of(recording, where)
        if conversation is not None:
            yield conversation


def tables(shown: Sequence[Shown]) -> Iterator[str]:
    """Yield what came of it, by folder, in Markdown."""
    yield (
        f"{len(shown)} sessions, {sum(each.calls for each in shown):,} calls, Lowwater as of {time.strftime('%Y-%m-%d')}.\n"
    )
    yield (
        "| folder | sessions | calls | bodies changed | decisions compared | compactions among them | decided otherwise | for another reason | reported | "
        "foreseen ÷ reported | behind compactions | sessions over 2 % off | calls against the cache's rules | "
        "foreseen ÷ reported without them | sessions over 2 % off without them | would have cost ÷ reported |"
    )
    yield f"|{'---|' * 16}"
    for folder in (*sorted({each.folder for each in shown}), ""):
        yield _row(folder or "all", [each for each in shown if not folder or each.folder == folder])


def _row(name: str, shown: Sequence[Shown]) -> str:
    bills = [each.bills for each in shown if each.bills.calls]
    reported = sum(each.reported for each in bills)
    after = sum(each.reported_after for each in bills)
    by_rules = [each.by_rules for each in bills]
    cells = [
        name,
        f"{len(shown)}",
        f"{sum(each.calls for each in shown):,}",
        f"{sum(each.requests_changed + each.answers_changed for each in shown)}",
        f"{sum(each.compared for each in shown):,}",
        f"{sum(each.compactions for each in shown)}",
        f"{sum(each.otherwise for each in shown)}",
        f"{sum(each.other_reasons for each in shown)}",
        f"${reported / 1e9:,.2f}" if bills else "–",
        _ratio(sum(each.foreseen for each in bills), reported),
        _ratio(sum(each.foreseen_after for each in bills), after),
        f"{sum(each.off > MOST_OFF for each in bills)} of {len(bills)}" if bills else "–",
        f"{sum(each.against_rules for each in bills)}" if bills else "–",
        _ratio(sum(each.foreseen for each in by_rules), sum(each.reported for each in by_rules)),
        f"{sum(each.off > MOST_OFF for each in by_rules)} of {len(bills)}" if bills else "–",
        _ratio(sum(each.would for each in bills), reported),
    ]
    return f"| {' | '.join(cells)} |"


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.4f}" if whole else "–"


def holds(shown: Sequence[Shown]) -> bool:
    """Return whether no byte changed, every bill was foreseen, and every decision was that of a live gateway.

    Of the bills, the calls count at which the cache did what it promises.
    """
    return all(
        not (each.otherwise or each.requests_changed or each.answers_changed)
        and each.bills.by_rules.off <= MOST_OFF
        for each in shown
    )


def _read(results: Path | None) -> list[Shown]:
    if results is None or not results.exists():
        return []
    return [msgspec.json.decode(line, type=Shown) for line in results.read_bytes().splitlines()]


def _play_all(asked: argparse.Namespace, known: Iterable[str]) -> Iterator[Shown]:
    done, left = set(known), asked.sessions or None
    until: float | None = None
    with ExitStack() as stack:
        player = Player(stack)
        for conversation in islice(conversations(), left):
            if conversation.name in done:
                continue
            # Reading the recordings takes a while, too.
            until = until or time.monotonic() + 60 * (inf if asked.minutes is None else asked.minutes)
            if time.monotonic() >= until:
                return
            shown = player.show(conversation)
            if asked.results is not None:
                with asked.results.open("ab") as file:
                    file.write(msgspec.json.encode(shown) + b"\n")
            yield shown


def main() -> int:
    """Play, print the table and every session that differs."""
    given = argparse.ArgumentParser(description="Shadow mode on every recorded session.")
    given.add_argument("--sessions", type=int, default=0, help="so many of the sessions; 0 for all")
    given.add_argument("--results", type=Path, help="what is played is kept here and not played again")
    given.add_argument("--minutes", type=float, help="stop after so many minutes")
    given.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    asked = given.parse_args()
    if not TRANSCRIPTS.is_dir():
        print(ABSENT)
        return 0
    shown = _read(asked.results)
    if asked.minutes != 0:
        shown += _play_all(asked, [each.session for each in shown])
    said = "\n".join(tables(shown))
    print(said)
    for each in shown:
        if not holds([each]) or each.bills.off > MOST_OFF:
            changed = each.requests_changed + each.answers_changed
            print(
                f"{each.session}: {each.calls} calls, {changed} changed, {each.otherwise} of {each.compared} decided otherwise, "
                f"foreseen {_ratio(each.bills.foreseen, each.bills.reported)}, without {each.bills.against_rules} calls against "
                f"the cache's rules {_ratio(each.bills.by_rules.foreseen, each.bills.by_rules.reported)}"
            )
    if asked.write:
        write_between(README, BEGIN, END, said)
    return int(not holds(shown))


if __name__ == "__main__":
    sys.exit(main())
