"""The key by which OpenAI brings the requests of one conversation to the machine that has its cache."""

from hashlib import blake2b

from lowwater.values.model import Model

_BYTES = 8


def cache_key_for(model: Model, *, session: str) -> str:
    """Return the session's `prompt_cache_key`, the same in every process; empty where the provider documents none.

    It is a hash of the session's name and says nothing of what is in it.
    """
    if model.provider != "openai":
        return ""
    return f"lw-{blake2b(session.encode(errors='surrogatepass'), digest_size=_BYTES).hexdigest()}"
