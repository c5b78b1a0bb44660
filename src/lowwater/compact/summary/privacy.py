"""What a summary may be made from: the conversation without its secrets."""

from msgspec.structs import replace

from lowwater.values.secrets import conceal, conceal_parts
from lowwater.values.summaries import SummaryRequest


def concealed(request: SummaryRequest) -> SummaryRequest:
    """Return the request without secrets in what is to be condensed, if it asks for that; then it asks no more.

    What it rides on stays byte for byte: the provider has it already, and its cache depends on it.
    """
    if not request.redact:
        return request
    return replace(
        request,
        messages=tuple(conceal_parts(message) for message in request.messages),
        previous=conceal(request.previous),
        focus=conceal(request.focus),
        newest_user=request.newest_user and conceal_parts(request.newest_user),
        redact=False,
    )
