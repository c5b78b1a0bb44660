"""What a chat request means to the cache, and how a chat answer tells what the cache did."""

from lowwater.testing.provider.caches import Used
from lowwater.testing.provider.caches.choice import Reports
from lowwater.testing.provider.openai.body import message_pieces, pieces
from lowwater.testing.provider.prompt import Piece, Prompt
from lowwater.testing.provider.rule import Incoming, Json

LONG = ("12h", "1h")


def prompt_of(incoming: Incoming, message: Json, thought: str) -> Prompt:
    """Return a request and the message that answers it; what was thought stands before the message, unseen."""
    body = incoming.body
    options = body.get("prompt_cache_options") or {}
    answer = message_pieces(message, len(body["messages"]))
    if thought:
        unseen = {"type": "text", "text": thought}
        answer.insert(0, Piece(section="messages", path="", role="thinking", value=unseen))
    return Prompt(
        pieces(body),
        incoming.count,
        answer=answer,
        long=options.get("ttl") in LONG or body.get("prompt_cache_retention") == "24h",
        implicit=options.get("mode") != "explicit",
        conversation=str(body.get("prompt_cache_key") or ""),
    )


def prompt_usage(used: Used, reports: Reports) -> Json:
    """Return the fields about the prompt's tokens as the provider names them."""
    details = {"cached_tokens": used.read, "audio_tokens": 0}
    written = used.written + used.written_long
    match reports:
        case "reads":
            return {"prompt_tokens_details": details}
        case "writes":
            return {"prompt_tokens_details": {**details, "cache_write_tokens": written}}
        case "creation":
            return {"prompt_tokens_details": {**details, "cache_creation_input_tokens": written}}
        case "units":
            return {
                "prompt_tokens_details": details,
                "prompt_cache_hit_tokens": used.read,
                "prompt_cache_miss_tokens": used.prompt - used.read,
            }
