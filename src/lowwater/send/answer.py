"""Reading a model's answer: a summary as it was written, or the reason why there is none."""

import re

from lowwater.core.api_calls import Response
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.openai_responses import failed_in
from lowwater.core.formats.streams import CUT_OFF, stream_for
from lowwater.core.messages import Opaque
from lowwater.core.summary.request import Written
from lowwater.errors import BadInput, SummaryFailed
from lowwater.send.refusing import failure_told

_CALLS = frozenset({"tool_use", "tool_calls", "function_call", "pause_turn"})
_DECLINES = frozenset({"refusal", "content_filter"})
_CUT_OFF = frozenset(
    {"max_tokens", "length", "model_context_window_exceeded", "max_output_tokens", "incomplete"}
)
_REFUSAL = "refusal"
_REFUSAL_FIELD = b'"refusal"'
_STREAM = (b"event:", b"data:", b":")
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)


def written_in(raw: bytes, *, asked: str) -> Written:
    """Return the summary in a provider's answer, or raise SummaryFailed: a call, a refusal and silence are none."""
    raw = _unstreamed(raw)
    try:
        if (failed := failed_in(raw)) is not None:
            raise failure_told(failed.said, spent=failed.usage)
        response = decode_response(raw)
    except BadInput:
        raise SummaryFailed(
            f"the answer of {asked} cannot be read: {len(raw):,} bytes of something else"
        ) from None
    cut_off, spent = response.stop in _CUT_OFF, response.usage
    if response.message.calls or response.stop in _CALLS:
        raise SummaryFailed(f"{asked} called a tool instead of writing a summary", spent=spent)
    if response.stop in _DECLINES or _declines(response):
        raise SummaryFailed(f"{asked} declined to write a summary", "refused", spent=spent)
    text = _THOUGHT.sub("", response.message.text).strip()
    if not text and cut_off:
        raise SummaryFailed(f"{asked} used up its length before it wrote anything", "refused", spent=spent)
    if not text:
        raise SummaryFailed(f"{asked} answered with nothing", spent=spent)
    return Written(text=text, by=asked, cut_off=cut_off, usage=spent, model=response.model or asked)


def _declines(response: Response) -> bool:
    """Tell whether the answer is a refusal by its form; one in words alone is for those who judge the summary."""
    return any(
        _REFUSAL_FIELD in part.extra or (isinstance(part, Opaque) and part.block == _REFUSAL)
        for part in response.message.parts
    )


def _unstreamed(raw: bytes) -> bytes:
    """Return an answer as it would have come whole; only Responses are asked for as streams, of those who give nothing else."""
    if not raw.lstrip().startswith(_STREAM):
        return raw
    stream = stream_for("openai_responses")
    stream.feed(raw)
    stream.end()
    answer = stream.answer()
    if answer is not None:
        return answer
    if stream.broken == CUT_OFF:
        raise SummaryFailed("the connection broke in the middle of the answer", "network", spent=stream.usage)
    raise failure_told(stream.broken, spent=stream.usage)
