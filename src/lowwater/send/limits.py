"""How long an answer may be, in the field that the endpoint reads."""

from msgspec import Struct

from lowwater.send.endpoint import Endpoint

_HEADROOM = 2
"""Models count in other tokens than ours, and one that ends on its own is better than one cut off."""
THINKING = 8_000
"""Tokens for thinking where a model may think, its limit counts that, and nobody says how many it takes."""


class OutputLimit(Struct, frozen=True, kw_only=True):
    """The name of the field, and its value; one without a name is kept in mind and not sent."""

    field: str
    tokens: int

    def fields(self) -> dict[str, int]:
        """Return what is sent of it."""
        return {self.field: self.tokens} if self.field else {}


def output_limit(endpoint: Endpoint, wanted: int) -> OutputLimit:
    """Return the limit for a summary of `wanted` tokens."""
    if endpoint.format == "openai_responses":
        field = "" if endpoint.only_streams else "max_output_tokens"
        return OutputLimit(field=field, tokens=_HEADROOM * wanted + THINKING)
    if endpoint.limits_completion:
        return OutputLimit(field="max_completion_tokens", tokens=_HEADROOM * wanted + THINKING)
    return OutputLimit(field="max_tokens", tokens=_HEADROOM * wanted)
