"""Reading a model's answer: a summary as it was written, or the reason why there is none."""

import re

from lowwater.errors import BadInput, SummaryFailed
from lowwater.values.response import Response
from lowwater.values.summaries import Written
from lowwater.wire.response import decode_response

_CALLS = frozenset({"tool_use", "tool_calls", "function_call", "pause_turn"})
_DECLINES = frozenset({"refusal", "content_filter"})
_CUT_OFF = frozenset({"max_tokens", "length", "model_context_window_exceeded"})
_REFUSAL_FIELD = b'"refusal"'
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)


def written_in(raw: bytes, *, asked: str) -> Written:
    """Return the summary in a provider's answer, or raise SummaryFailed: a call, a refusal and silence are none."""
    try:
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
    return any(_REFUSAL_FIELD in part.extra for part in response.message.parts)
