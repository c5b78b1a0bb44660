"""How routers handle cache marks in chat requests: one record for each, with its sources.

The chat format is OpenAI's and has no `cache_control`; everyone who serves other models through it reads the marks in their own
way. All have in common that a mark goes on a text part of a message's content (a plain text becomes a list with one part), never
on the message itself and never on an empty text, and that there are at most four. They differ in how they treat tool messages.
"""

from urllib.parse import urlsplit

from msgspec import Struct


class Router(Struct, frozen=True, kw_only=True):
    """What one router, or one provider with a chat format, does with cache marks."""

    name: str
    on_tools: bool
    """Whether marks on the text of tool messages work. If not, they are ignored or the whole request is rejected."""
    most: int = 4
    says: str
    """What it does with marks, in a sentence."""
    sources: tuple[str, ...]
    """Where this is documented; checked on 2026-11-16."""


OPENROUTER = Router(
    name="openrouter",
    on_tools=True,
    says="moves the mark of a tool message's part to the tool result; `cache_control` on a tool message itself hangs without an error",
    sources=(
        "https://openrouter.ai/docs/guides/best-practices/prompt-caching",
        "https://github.com/NousResearch/hermes-agent/pull/2391",
        "https://github.com/NousResearch/hermes-agent/pull/57893",
    ),
)
LITELLM = Router(
    name="litellm",
    on_tools=False,
    says="copies the parts of a tool message as they are; Anthropic then refuses the request: "
    "`cache_control may not be specified within tool_result.content`",
    sources=(
        "https://docs.litellm.ai/docs/tutorials/prompt_caching",
        "https://github.com/NousResearch/hermes-agent/pull/89931",
    ),
)
ALIBABA = Router(
    name="alibaba",
    on_tools=True,
    says="reads marks on parts of any message's content, and none on messages; its own client marks tool messages so",
    sources=(
        "https://www.alibabacloud.com/help/en/model-studio/context-cache",
        "https://github.com/QwenLM/qwen-code/blob/main/packages/core/src/core/openaiContentGenerator/provider/dashscope.ts",
    ),
)
UNKNOWN = Router(
    name="unknown",
    on_tools=False,
    says="nothing is known of tool messages, so that only texts of the system, the user and the assistant are marked",
    sources=("https://platform.claude.com/docs/en/build-with-claude/prompt-caching",),
)
ROUTERS = (OPENROUTER, LITELLM, ALIBABA, UNKNOWN)

_PREFIXES = {"openrouter": OPENROUTER, "litellm": LITELLM, "litellm_proxy": LITELLM}
_HOSTS = (("openrouter.ai", OPENROUTER), ("aliyuncs.com", ALIBABA))


def router_of(model: str, base_url: str = "") -> Router | None:
    """Return the router that the URL of the API or the model's name identifies; None if neither does."""
    host = (urlsplit(base_url).hostname or "") if base_url else ""
    for known, router in _HOSTS:
        if host == known or host.endswith(f".{known}"):
            return router
    first, _, rest = model.lower().replace(":", "/", 1).partition("/")
    return _PREFIXES.get(first) if rest else None
