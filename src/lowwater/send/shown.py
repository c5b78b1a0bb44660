"""The request that shows a model a transcript: bounded, whatever the conversation was."""

from msgspec import Struct

from lowwater.core.strict_json import write_json
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.safety import concealed
from lowwater.core.summary.transcript import head_and_tail, transcript_for
from lowwater.errors import SummaryFailed
from lowwater.protocols import Tokenizer
from lowwater.send.endpoint import Endpoint
from lowwater.send.instruction import instruction_with, role
from lowwater.send.limits import output_limit

MOST_BYTES = 2_000_000
"""What a transcript may be at most, however large the window is."""
_USABLE = 0.85
"""Of the window: our tokens are not the model's."""
_FEWEST = 500
_MOST_PREVIOUS = 60_000
"""Characters of the previous summary that are shown."""


class _Bounded(Struct, frozen=True, kw_only=True):
    """Counts tokens such that `limit` of them never are more than MOST_BYTES."""

    tokenizer: Tokenizer
    limit: int

    @property
    def vocabulary(self) -> str:
        return self.tokenizer.vocabulary

    def count(self, text: str, /) -> int:
        size = len(text.encode("utf-8", "surrogatepass"))
        return max(self.tokenizer.count(text), -(-size * self.limit // MOST_BYTES))


def shown_body(
    request: SummaryRequest, endpoint: Endpoint, *, context_length: int, tokenizer: Tokenizer
) -> bytes:
    """Return the body of a request that shows the messages as text and fits the window, or raise SummaryFailed.

    Secrets are not shown unless the request allows them. Where not everything fits, results are shortened first, then
    the oldest messages left out with a note.
    """
    request = concealed(request)
    limit = output_limit(endpoint, request.max_tokens)
    previous = head_and_tail(request.previous.strip(), _MOST_PREVIOUS)
    words = tokenizer.count(instruction_with("", request, previous=previous)) + tokenizer.count(role())
    left = int(_USABLE * context_length) - limit.tokens - words
    if left < _FEWEST:
        raise SummaryFailed(
            f"a window of {context_length:,} tokens is too small to summarise in: choose another summary model",
            "refused",
        )
    bounded = _Bounded(tokenizer=tokenizer, limit=left)
    transcript = transcript_for(request, bounded, max_tokens=left)
    told = {"role": "user", "content": instruction_with(transcript, request, previous=previous)}
    return write_json(
        {"model": endpoint.model, **limit.fields(), **_conversation(endpoint, told)},
    )


def _conversation(endpoint: Endpoint, told: dict[str, str]) -> dict[str, object]:
    if endpoint.format == "anthropic":
        return {"system": role(), "messages": [told]}
    if endpoint.format == "openai_responses":
        streamed = {"stream": True} if endpoint.only_streams else {}
        return {"instructions": role(), "input": [told], "store": False, **streamed}
    return {"messages": [{"role": "system", "content": role()}, told]}
