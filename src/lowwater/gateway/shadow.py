"""Shadow mode in the gateway: summaries that no model is asked for, and the recording of what a turn would have cost."""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Response, Usage
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.summary.transcript import transcript_for
from lowwater.core.tokens.counting import rules_for
from lowwater.core.turns.shadow import RemovedSize, record_shadow, record_shadow_side_call
from lowwater.core.turns.state import State
from lowwater.core.turns.turn import Recorded
from lowwater.session.factories import counter_for
from lowwater.session.internals import internals
from lowwater.session.session import Session

_INSTRUCTION = 400
"""Tokens of the instruction that asks for a summary."""
_LENGTH = 3_000
"""Tokens that a summary by a model has at most: about the length of recorded ones."""
LAST_PROMPT: ContextVar[int] = ContextVar("last_prompt", default=0)
"""The size of the request that was sent last in the session whose summary is being prepared, in the model's tokens."""


_REMOVED: "WeakKeyDictionary[Session, RemovedSize]" = WeakKeyDictionary()
"""What compactions have removed, by session; of one that was loaded again it is taken anew from its counts."""


class ShadowSummarizer:
    """Stands in for a model: its summaries are extracted, and its usage is what the call for one would have been billed for.

    The session's own model would extend the last request, which is in the cache by then; another one would read a transcript.
    """

    def __init__(self, model: str, *, is_own: bool) -> None:
        self.model = model
        self._is_own = is_own
        self._tokenizer = counter_for(model)
        self._scale = rules_for(model).scale

    def reaches(self, _base_url: str) -> bool:
        """Return True: it stands in for a model of the session's own provider, and sends nothing."""
        return True

    async def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extract; no model is asked."""
        return await asyncio.to_thread(self._written, request, LAST_PROMPT.get())

    def _written(self, request: SummaryRequest, last_prompt: int) -> Written:
        text = extract(replace(request, max_tokens=min(request.max_tokens, _LENGTH)), self._tokenizer)
        usage = Usage(uncached=_INSTRUCTION, output=self._tokens(text))
        if self._is_own and request.cached_prefix is not None and last_prompt:
            since = sum(self._tokens(message.text) for message in request.cached_prefix.since)
            usage = replace(usage, cache_read=last_prompt, uncached=_INSTRUCTION + since)
        else:
            context = load_registry().find(self.model).context_length
            shown = transcript_for(request, self._tokenizer, max_tokens=context)
            usage = replace(
                usage, uncached=_INSTRUCTION + self._tokens(shown) + self._tokens(request.previous)
            )
        return Written(text=text, by=f"extract in place of {self.model}", model=self.model, usage=usage)

    def _tokens(self, text: str) -> int:
        return round(self._tokenizer.count(text) * self._scale)


def record_shadow_answer(
    session: Session, answer: bytes, others: Sequence[Usage], *, added_tools: bytes, own_tools: bytes
) -> None:
    """Record the answer to a client's own request with what the session's request would have been billed for."""
    inside = internals(session)
    setup = inside.shared.setup
    added = setup.size_preamble(b"", added_tools) - setup.size_preamble(b"", own_tools)
    before = _REMOVED.get(session, RemovedSize())

    def recorded(state: State, response: Response) -> Recorded:
        shadow = record_shadow(state, response, setup, inside.now(), added=added, removed=before)
        _REMOVED[session] = shadow.removed
        return shadow.done

    inside.recorder.record(answer, others, recorded, offers_recall=False)


def record_shadow_side_answer(session: Session, answer: bytes, others: Sequence[Usage]) -> None:
    """Bill the answer to a client's own question beside the conversation."""
    inside = internals(session)
    inside.recorder.record(
        answer,
        others,
        lambda state, response: record_shadow_side_call(state, response, inside.now()),
        appends=False,
    )
