"""Replays a script with the real engine: the messages at their recorded times, each call billed by the provider's cache rules."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.accounts.cadence import summaries_in
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import INSTRUCTION, cost_of
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_completion
from lowwater.core.ledger import Ledger
from lowwater.core.models.model import MarkedPrefixes, Model
from lowwater.core.stored import Hit
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.tokens.counting import rules_for
from lowwater.core.view import Edited
from lowwater.lab.references.reachability import Scorer, UseOutcome
from lowwater.lab.references.uses import LaterUse
from lowwater.lab.replay.course_replay import CallLog, CallResult, CourseEvent, PolicyOutcome
from lowwater.lab.replay.script import TAIL, ReplayScript, ScriptedCall, sheet_of
from lowwater.observe.sinks import MemorySink
from lowwater.protocols import Tokenizer
from lowwater.session.dependencies import ManualClock
from lowwater.session.factories import counter_for
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import OutputSettings, Settings

_SESSION = "replay"
_FILLER_WORD = " the"
"""One token in all vocabularies in use."""


class EngineRun(Struct, frozen=True, kw_only=True):
    """How a session is played; sizes are in the model's tokens."""

    policy: str
    """Its name in the engine."""
    model: Model
    outputs: tuple[int, ...]
    """Output tokens of each call."""
    fixed: int = 0
    """Tokens of tools and system prompt; only their size is known."""
    lost: tuple[bool, ...] = ()
    """For each call, whether the cache has lost the prefix against the rules; empty if it never has."""
    other: Model | None = None
    """Another model that may write summaries if that is cheaper."""
    keyless: bool = False
    """Whether there is no model for summaries at all."""
    offers_recall: bool = True


class ReplaySummarizer:
    """Stands in for a model with the extractive summarizer, so that summaries are equally good for every policy.

    Its summaries are at most as long as those assumed on courses, which is about the length of recorded ones.
    """

    def __init__(self, billed: Model) -> None:
        self.billed = billed
        self.model = billed.name
        self.name = f"stand-in for {billed.name}"
        self._tokenizer = counter_for(billed.name)

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extractive summary."""
        shorter = replace(request, max_tokens=min(request.max_tokens, sheet_of(self.billed).summary))
        return Written(text=extract(shorter, self._tokenizer), by=self.name)


def play_with_engine(script: ReplayScript, uses: Sequence[LaterUse], run: EngineRun) -> PolicyOutcome:
    """Play a session under a policy of the engine; the outcome carries the engine's name of the policy."""
    return _EngineReplay(script, uses, run).play()


class _EngineReplay:
    """Plays one session under one policy of the engine."""

    def __init__(self, script: ReplayScript, uses: Sequence[LaterUse], run: EngineRun) -> None:
        self._script, self._run, self._model = script, run, run.model
        self._tokenizer = counter_for(run.model.name)
        self._clock, self._sink = ManualClock(), MemorySink()
        models = () if run.keyless else (run.model, run.other)
        writers = [ReplaySummarizer(model) for model in models if model is not None]
        self._billed_by = {writer.name: writer.billed for writer in writers}
        self._library = Lowwater(
            store="memory:",
            model=run.model.name,
            policy=run.policy,
            clock=self._clock,
            summarizer=writers,
            settings=Settings(output=OutputSettings(quiet=True)),
            sinks=(self._sink,),
        )
        self._session = self._library.session(_SESSION)
        self._session.learn_context_length(run.model.context_length)
        self._scorer = Scorer(uses, script.messages, tokenizer=self._tokenizer)
        self._ttl = sheet_of(run.model).ttl
        self._sent, self._called = 0, 0.0
        self._recalled: dict[int, int] = {}
        self._rows = CallLog()

    def play(self) -> PolicyOutcome:
        """Play every call and return the outcome."""
        for turn, call in enumerate(self._script.exchanges):
            self._clock.advance(max(0.0, call.at - self._clock.now()))
            self._session.append([msgspec.Raw(raw) for raw in call.new])
            self._call(turn, call)
        account = self._library.store.accounts([_SESSION])[0]
        self._library.close()
        return self._rows.outcome(self._run.policy, account, context_length=self._model.context_length)

    def _call(self, turn: int, call: ScriptedCall) -> None:
        known = len(self._sink.events)
        self._session.prepare(system=self._system(turn), offers_recall=self._run.offers_recall)
        events = [event for _, event in self._sink.events[known:] if isinstance(event, Compaction)]
        usage = self._billed(
            turn, replace(internals(self._session).expected_usage, output=self._run.outputs[turn])
        )
        asked = sum(self._asked(turn, event) for event in events)
        ledger, scale = internals(self._session).ledger, internals(self._session).scale
        self._rows.calls.append(
            CallResult(
                usage=usage,
                cost=_cost(usage, self._model) + asked,
                asked=asked,
                rework=self._rework(ledger, usage.prompt),
                elided=round(_elided(ledger) * scale),
                removed=round((ledger.view.original_tokens - ledger.view.tokens) * scale),
            )
        )
        self._rows.events += [
            CourseEvent(
                turn=turn, mode=each.mode, before=each.before, after=each.after, because=each.because.code
            )
            for each in events
        ]
        self._called, self._sent = self._clock.now(), usage.prompt
        self._session.record(as_completion(msgspec.Raw(call.answer), usage, self._model.name))

    def _system(self, turn: int) -> str | None:
        if turn or not self._run.fixed:
            return None
        return filler_text(round(self._run.fixed / rules_for(self._model.name).scale), self._tokenizer)

    def _billed(self, turn: int, usage: Usage) -> Usage:
        """Return the usage with cache reads billed in full if the cache has lost the prefix."""
        if not self._is_lost(turn):
            return usage
        read = usage.cache_read
        if isinstance(self._model.cache.matching, MarkedPrefixes):
            return replace(usage, cache_read=0, cache_write=usage.cache_write + read)
        return replace(usage, cache_read=0, uncached=usage.uncached + read)

    def _asked(self, turn: int, event: Compaction) -> int:
        """Return the cost of a compaction's summary calls.

        The session's own model gets the previous request with an instruction appended; another model only what is replaced.
        """
        model = self._billed_by.get(event.summarizer)
        if model is None:
            return 0
        if model.name != self._model.name:
            replaced = event.reclaimed + event.summary_tokens
            return _cost(Usage(uncached=replaced + INSTRUCTION, output=event.summary_tokens), model)
        is_warm = self._clock.now() - self._called <= self._ttl and not self._is_lost(turn)
        read = min(self._sent, event.before) if is_warm else 0
        usage = Usage(
            cache_read=read, uncached=event.before - read + INSTRUCTION, output=event.summary_tokens
        )
        again = replace(usage, output=0)
        return _cost(usage, model) + (summaries_in(event) - 1) * _cost(again, model)

    def _rework(self, ledger: Ledger, prompt: int) -> int:
        """Return the cost of the recalls that this call needs; a recalled result stays in the tail for a while."""
        found, scale = self._scorer.at(ledger, self._search), internals(self._session).scale
        self._rows.found += found
        cost, whole = 0, round(ledger.view.original_tokens * scale)
        for number, tokens in _lost(found).items():
            if whole - self._recalled.get(number, -TAIL) >= TAIL:
                recall = Usage(cache_read=prompt, cache_write=round(tokens * scale))
                cost += _cost(recall, self._model)
            self._recalled[number] = whole
        return cost

    def _search(self, words: str, limit: int) -> Sequence[Hit]:
        return self._library.store.search(words, session=_SESSION, limit=limit)

    def _is_lost(self, turn: int) -> bool:
        return bool(self._run.lost) and self._run.lost[turn]


def _cost(usage: Usage, model: Model) -> int:
    cost = cost_of(usage, model)
    assert cost is not None, f"no price is known for {model.name}"
    return cost


def filler_text(tokens: int, tokenizer: Tokenizer) -> str:
    """Return a text of about `tokens` tokens, in place of one that was not recorded."""
    counted = max(1, tokenizer.count(_FILLER_WORD * 1_000))
    return _FILLER_WORD * round(tokens * 1_000 / counted)


def _elided(ledger: Ledger) -> int:
    return sum(
        ledger.messages[item.number - 1].tokens - item.tokens
        for item in ledger.view.items
        if isinstance(item, Edited)
    )


def _lost(found: Sequence[UseOutcome]) -> dict[int, int]:
    """Return the results to be recalled: by message number, the most tokens that one use needs."""
    lost: dict[int, int] = {}
    for each in found:
        if each.place != "in_view":
            number = each.use.origin.number
            lost[number] = max(lost.get(number, 0), each.tokens)
    return lost
