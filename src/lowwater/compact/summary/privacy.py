"""What a summary may be made from: the conversation without its secrets."""

from msgspec.structs import replace

from lowwater.values.message import Message
from lowwater.values.secrets import conceal, conceal_parts
from lowwater.values.summaries import SummaryRequest


def shown_to_others(request: SummaryRequest) -> SummaryRequest:
    """Return the request as it is handed to whoever writes the summary: without secrets, if it asks for that.

    It still asks for it, so that a summarizer knows. Messages come without the bytes they came in, which may hold what
    their parts no longer do.
    """
    if not request.redact:
        return request
    told = concealed(request)
    newest = told.newest_user
    return replace(
        told,
        messages=tuple(map(_without_bytes, told.messages)),
        newest_user=None if newest is None else _without_bytes(newest),
        redact=True,
    )


def _without_bytes(message: Message) -> Message:
    return Message(role=message.role, parts=message.parts, name=message.name)


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
