"""Where cache marks may stand in a chat request, by who takes it: a contract per router, each with its sources.

The chat format is OpenAI's and knows no `cache_control`; whoever serves other models over it reads the marks in a way of its own. What
all of them have in common: a mark stands on a text part of a message's content (a text becomes a list with one part), never on the
message itself and never on an empty text, and there are at most four. They differ in what they do to the parts of tool messages.
"""

from urllib.parse import urlsplit

from msgspec import Struct


class Router(Struct, frozen=True, kw_only=True):
    """What one router, or one provider with a chat format, does with cache marks."""

    name: str
    on_tools: bool
    """Whether a mark on the text of a tool message is read. Where it is not, it is ignored or the whole request is refused."""
    most: int = 4
    says: str
    """What happens there, in a sentence."""
    sources: tuple[str, ...]
    """Where that was read; checked on 2026-11-16."""


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
    """Return the router that a model's name or the URL of its API tells; None if neither names one."""
    host = (urlsplit(base_url).hostname or "") if base_url else ""
    for known, router in _HOSTS:
        if host == known or host.endswith(f".{known}"):
            return router
    first, _, rest = model.lower().replace(":", "/", 1).partition("/")
    return _PREFIXES.get(first) if rest else None
