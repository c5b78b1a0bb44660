"""Replays a script with the real engine: the messages at their recorded times, each call billed by the provider's cache rules."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage, together
from lowwater.core.cache.marks import CacheMarks
from lowwater.core.costs.prices import INSTRUCTION, cost_of
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_completion
from lowwater.core.ledger import Ledger
from lowwater.core.models.model import MarkedPrefixes, Model
from lowwater.core.stored import Hit
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.summary.transcript import transcript_for
from lowwater.core.tokens.counting import rules_for
from lowwater.core.turns.cache import lifetime_of
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
from lowwater.session.turn_input import TurnInput
from lowwater.settings import OutputSettings, Settings

NEVER = "never"
"""The policy under which a session is what it would be without Lowwater."""
_SESSION = "replay"
_FILLER_WORD = " the"
"""One token in all vocabularies in use."""


class Configuration(Struct, frozen=True, kw_only=True):
    """How Lowwater is set up: who writes summaries, when, and whether the model can recall."""

    name: str
    about: str
    writers: tuple[Literal["own", "cheaper"], ...] = ()
    """Who may be asked for summaries: the session's own model, the provider's cheaper one; empty if nobody."""
    prefetches: bool = False
    """Whether summaries are only written beside answers, before they are needed, so that no request waits for one."""
    offers_recall: bool = True


CONFIGURATIONS = {
    each.name: each
    for each in (
        Configuration(
            name="shipped",
            about="what `lowwater run` does with an API key: recall, and summaries written beside answers by the "
            "session's model or its provider's cheaper one",
            writers=("own", "cheaper"),
            prefetches=True,
        ),
        Configuration(
            name="full",
            about="recall, and summaries by either model at the moment they are needed, as in the library",
            writers=("own", "cheaper"),
        ),
        Configuration(
            name="own-model",
            about="recall, and summaries by the session's own model only, at the moment they are needed",
            writers=("own",),
        ),
        Configuration(name="keyless", about="recall, and no model is asked: summaries are extracted"),
        Configuration(
            name="no-recall",
            about="neither recall nor a model for summaries, as `lowwater serve` without options",
            offers_recall=False,
        ),
    )
}
"""The configurations that replays and benchmarks speak of, the shipped one first."""
SHIPPED, FULL = CONFIGURATIONS["shipped"], CONFIGURATIONS["full"]


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
    configuration: Configuration = SHIPPED
    disturbed_calls: float | None = None
    """The setting of that name; None for its default."""


class _SummaryAsked(Struct, frozen=True, kw_only=True):
    """One request for a summary, in the tokens of the model that is billed for it."""

    billed: Model
    extends: bool
    """Whether it extended the session's last request; otherwise a transcript was sent."""
    transcript: int
    written: int


class ReplaySummarizer:
    """Stands in for a model with the extractive summarizer, so that summaries are equally good for every policy.

    Its summaries are at most as long as those assumed on courses, which is about the length of recorded ones. `asked` has
    the requests since it was last emptied.
    """

    def __init__(self, billed: Model, *, is_own: bool) -> None:
        self.billed = billed
        self.model = billed.name
        self.asked: list[_SummaryAsked] = []
        self._is_own = is_own
        self._tokenizer = counter_for(billed.name)
        self._scale = rules_for(billed.name).scale

    def reaches(self, _base_url: str) -> bool:
        """Return True: it stands in for a model of the session's own provider, and sends nothing."""
        return True

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extractive summary."""
        shorter = replace(request, max_tokens=min(request.max_tokens, sheet_of(self.billed).summary))
        text = extract(shorter, self._tokenizer)
        extends, sent = self._is_own and request.cached_prefix is not None, 0
        if not extends:
            shown = transcript_for(request, self._tokenizer, max_tokens=self.billed.context_length)
            sent = self._tokens(shown) + self._tokens(request.previous)
        self.asked.append(
            _SummaryAsked(billed=self.billed, extends=extends, transcript=sent, written=self._tokens(text))
        )
        return Written(text=text, by=f"stand-in for {self.billed.name}")

    def _tokens(self, text: str) -> int:
        return round(self._tokenizer.count(text) * self._scale)


def play_with_engine(script: ReplayScript, uses: Sequence[LaterUse], run: EngineRun) -> PolicyOutcome:
    """Play a session under a policy of the engine; the outcome carries the engine's name of the policy."""
    return _EngineReplay(script, uses, run).play()


class _EngineReplay:
    """Plays one session under one policy of the engine."""

    def __init__(self, script: ReplayScript, uses: Sequence[LaterUse], run: EngineRun) -> None:
        self._script, self._run, self._model = script, run, run.model
        self._tokenizer = counter_for(run.model.name)
        self._clock, self._sink = ManualClock(), MemorySink()
        self._writers = list(_writers(run))
        self._library = Lowwater(
            store="memory:",
            model=run.model.name,
            policy=run.policy,
            clock=self._clock,
            summarizer=self._writers,
            settings=_settings(run),
            sinks=(self._sink,),
        )
        self._session = self._library.session(_SESSION)
        self._session.learn_context_length(run.model.context_length)
        self._internals = internals(self._session)
        self._scorer = Scorer(
            uses, script.messages, tokenizer=self._tokenizer, offers_recall=self._offers_recall
        )
        self._marks: CacheMarks | None = None
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
        self._prepare(turn)
        events = [event for _, event in self._sink.events[known:] if isinstance(event, Compaction)]
        usage = self._billed(turn, replace(self._internals.expected_usage, output=self._run.outputs[turn]))
        asked = self._asked(is_warm=self._is_warm(turn))
        if self._run.configuration.prefetches:
            self._called, self._sent = self._clock.now(), usage.prompt
            self._session.prefetch_summary()
            asked += self._asked(is_warm=True)
        ledger, scale = self._internals.ledger, self._internals.scale
        self._rows.calls.append(
            CallResult(
                usage=usage,
                cost=cost_at_list_price(usage, self._model) + asked,
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

    def _prepare(self, turn: int) -> None:
        """Prepare the call as the library does, or as the gateway, which never waits for a summary."""
        system = self._system(turn)
        tools = None if turn or not self._offers_recall else self._session.recall_tools().openai
        if not self._run.configuration.prefetches:
            self._marks = self._session.prepare(system=system, tools=tools).marks
            return
        offered = self._internals.offer_turn(TurnInput(system=system, tools=tools))
        self._internals.accept_turn(offered, body=b"")
        self._marks = offered.request.marks

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
            return together((replace(usage, cache_read=0), self._written(read)))
        return replace(usage, cache_read=0, uncached=usage.uncached + read)

    @property
    def _offers_recall(self) -> bool:
        """Whether the model gets the recall tools, whose definitions are part of every prompt; without compaction it never does."""
        return self._run.configuration.offers_recall and self._run.policy != NEVER

    @property
    def _keeps_long(self) -> bool:
        """Whether the last request asked for the long lifetime."""
        return lifetime_of(self._marks) == "long"

    def _written(self, tokens: int) -> Usage:
        """Return the usage of so many tokens that are written to the cache."""
        return Usage(cache_write_long=tokens) if self._keeps_long else Usage(cache_write=tokens)

    def _is_warm(self, turn: int) -> bool:
        """Return whether the last prompt is still cached before a turn's call."""
        ttl = cache_lifetime(self._marks, self._model)
        return self._clock.now() - self._called <= ttl and not self._is_lost(turn)

    def _asked(self, *, is_warm: bool) -> int:
        """Return the cost of the summaries asked for since the last time.

        The session's own model gets the last request with an instruction appended; another model only a transcript.
        """
        cost = 0
        for writer in self._writers:
            for asked in writer.asked:
                prompt, read = asked.transcript, 0
                if asked.extends:
                    prompt, read = self._sent, self._sent if is_warm else 0
                usage = Usage(cache_read=read, uncached=prompt - read + INSTRUCTION, output=asked.written)
                cost += cost_at_list_price(usage, asked.billed)
            writer.asked.clear()
        return cost

    def _rework(self, ledger: Ledger, prompt: int) -> int:
        """Return the cost of the recalls, or tools run again, that this call needs; their results stay in the tail for a while."""
        found, scale = self._scorer.at(ledger, self._search), self._internals.scale
        self._rows.found += found
        cost, whole = 0, round(ledger.view.original_tokens * scale)
        for number, tokens in _lost(found).items():
            if whole - self._recalled.get(number, -TAIL) >= TAIL:
                recall = together((Usage(cache_read=prompt), self._written(round(tokens * scale))))
                cost += cost_at_list_price(recall, self._model)
            self._recalled[number] = whole
        return cost

    def _search(self, words: str, limit: int) -> Sequence[Hit]:
        return self._library.store.search(words, session=_SESSION, limit=limit)

    def _is_lost(self, turn: int) -> bool:
        return bool(self._run.lost) and self._run.lost[turn]


def _settings(run: EngineRun) -> Settings:
    settings = Settings(output=OutputSettings(quiet=True))
    if run.disturbed_calls is None:
        return settings
    return replace(settings, compression=replace(settings.compression, disturbed_calls=run.disturbed_calls))


def _writers(run: EngineRun) -> Iterator[ReplaySummarizer]:
    """Yield the summarizers of a run's configuration."""
    for who in run.configuration.writers:
        model = run.model if who == "own" else load_registry().cheaper(run.model)
        if model is not None:
            yield ReplaySummarizer(model, is_own=who == "own")


def cache_lifetime(marks: CacheMarks | None, model: Model) -> float:
    """Return how many seconds a prompt that was sent with these marks stays cached."""
    if marks is not None and marks.ttl == "1h" and model.cache.ttl_long is not None:
        return model.cache.ttl_long
    return sheet_of(model).ttl


def cost_at_list_price(usage: Usage, model: Model) -> int:
    """Return what a call costs on a model whose price is known, in nano-dollars."""
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
