"""One recorded message decoded, or counted as broken; what several of them say together."""

from collections import Counter
from collections.abc import Iterable

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_messages
from lowwater.core.formats.usage import decode_anthropic_usage as anthropic_usage
from lowwater.core.formats.usage import decode_openai_usage as chat_usage
from lowwater.core.messages import Format, Message
from lowwater.core.strict_json import read_fields, write_json
from lowwater.errors import BadInput, MalformedMessage
from lowwater.logs.recording import RecordedMessage
from lowwater.replay.importing.lines import RecordedFile

_ANTHROPIC_FIGURES = {"cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"}
_CHAT_FIGURES = {"prompt_tokens", "prompt_tokens_details", "input_tokens_details"}


def decoded(raw: bytes, format: Format, *, file: RecordedFile, where: int | str) -> Message | None:
    """Return the message in `raw`; None, and the place is counted as broken, if it is none."""
    try:
        return decode_messages([raw], format)[0]
    except MalformedMessage as error:
        file.broken(where, error.problem)
    except BadInput as error:
        file.broken(where, str(error))
    return None


def decoded_object(message: object, *, file: RecordedFile, where: int | str) -> Message | None:
    """Return a chat message that an importer made of other fields; None, and counted as broken, if it is none."""
    try:
        raw = write_json(message)
    except BadInput as error:
        file.broken(where, str(error))
        return None
    return decoded(raw, "openai_chat", file=file, where=where)


def usage_in(raw: bytes, *, file: RecordedFile, where: int | str) -> Usage | None:
    """Return the usage that a provider reported, whichever it was; None if it says nothing of the prompt.

    Both say `input_tokens`, which counts cached tokens at OpenAI and does not at Anthropic: the names beside it tell.
    """
    if raw.strip() in (b"", b"null", b"{}"):
        return None
    try:
        names = set(read_fields(raw))
        of_chat = bool(names & _CHAT_FIGURES) or not names & _ANTHROPIC_FIGURES
        usage = chat_usage(raw) if of_chat else anthropic_usage(raw)
    except BadInput as error:
        file.broken(where, str(error))
        return None
    return usage if usage.prompt else None


def model_of_most(messages: Iterable[RecordedMessage]) -> str:
    """Return the model that most calls name; empty if none does."""
    named = Counter(message.call.model for message in messages if message.call and message.call.model)
    return named.most_common(1)[0][0] if named else ""
