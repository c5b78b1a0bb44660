"""Parsing model names in the spellings of clients, routers and cloud providers."""

import re

from msgspec import Struct

RESELLERS = frozenset(
    {"bedrock", "bedrock-regional", "vertex", "azure", "openrouter", "copilot", "databricks"}
)
"""Hosts that resell the maker's service; any other host serves the weights at its own prices and cache rules."""

_HOSTS = {
    "bedrock": "bedrock",
    "bedrock_converse": "bedrock",
    "bedrock_mantle": "bedrock",
    "vertex": "vertex",
    "vertex_ai": "vertex",
    "google-vertex": "vertex",
    "publishers": "vertex",
    "azure": "azure",
    "azure_ai": "azure",
    "openrouter": "openrouter",
    "copilot": "copilot",
    "github_copilot": "copilot",
    "github-copilot": "copilot",
    "databricks": "databricks",
    "together": "together",
    "together_ai": "together",
    "fireworks": "fireworks",
    "fireworks_ai": "fireworks",
    "groq": "groq",
    "cerebras": "cerebras",
    "novita": "novita",
    "deepinfra": "deepinfra",
    "baseten": "baseten",
    "cloudflare": "cloudflare",
    "ollama": "ollama",
    "ollama_chat": "ollama",
    "lm_studio": "lm_studio",
    "vllm": "vllm",
    "hosted_vllm": "vllm",
    "sglang": "sglang",
    # The makers' names on Hugging Face: weights that anybody may be serving.
    "deepseek-ai": "open-weights",
    "zai-org": "open-weights",
    "minimaxai": "open-weights",
}
_MAKERS = frozenset(
    "anthropic openai openai-chat openai-responses google google-gla gemini deepseek xai x-ai grok mistral mistralai"
    " moonshot moonshotai alibaba dashscope qwen zai z-ai minimax gateway litellm litellm_proxy".split()
)
_BEDROCK_ID = re.compile(
    r"(?:(?P<region>global|us-gov|us|eu|apac|ap|au|ca|jp|sa|me|af|il|mx)\.)?"
    r"(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen|moonshotai|moonshot|minimax|zai|google|nvidia|writer)\."
)
_VERSION_DOT = re.compile(r"(?<=\d)\.(?=\d)")
_BLANK = re.compile(r"[\s_]+")
# Suffixes that do not make a name that of another model, longest form first.
_SUFFIX = re.compile(
    r"\[[^\]]*\]"  # [1m], as Claude Code writes it
    r"|[-@]20\d\d-\d\d-\d\d|[-@]20\d{6}|-\d{4}(?!\d)|-0\d\d(?!\d)"  # -2026-01-15, @20260115, -0915, -001
    r"|-preview(?:-\d\d-\d{4}|-\d\d-\d\d)?|[-@:](?:latest|default)"
    r"|-v\d+(?::\d+)?(?::\d+k)?"  # -v1:0, as on Bedrock
    r"|:(?:free|beta|nitro|floor|exacto|online|thinking)"  # as on OpenRouter
    r"|-thinking|-(?:minimal|low|medium|high|xhigh)(?![a-z])"  # how hard it thinks
)


class ModelSpelling(Struct, frozen=True, kw_only=True):
    """A parsed model name."""

    asked: str
    """The name as it was written."""
    host: str
    """Who serves the model, if the name says so and it is not the maker; otherwise empty."""
    path: tuple[str, ...]
    """The segments of the name after the host, in lower case."""
    name: str
    """The model's own name, normalised: lower case, versions with dashes, no prefix; a date may follow."""

    @property
    def full(self) -> str:
        """The name with its host before it, if it has one."""
        return f"{self.host}/{self.name}" if self.host else self.name


def read_name(asked: str) -> ModelSpelling:
    """Parse `asked`; any string is a valid name."""
    segments = [segment for segment in asked.strip().lower().split("/") if segment] or [""]
    router, colon, rest = segments[0].partition(":")
    if colon and (router in _HOSTS or router in _MAKERS):
        segments[:1] = [router, rest]
    elif router == "arn" and len(segments) > 1:
        segments[0] = "bedrock"
    at = next((at for at, segment in enumerate(segments[:-1]) if segment in _HOSTS), None)
    host, path = ("", segments) if at is None else (_HOSTS[segments[at]], segments[at + 1 :])
    last = segments[-1]
    if host in ("", "bedrock") and (vendor := _BEDROCK_ID.match(last)):
        host = "bedrock-regional" if vendor["region"] not in (None, "global") else "bedrock"
        name = last[vendor.end() :]
    elif not host and last.startswith("databricks-"):
        host, name = "databricks", last.removeprefix("databricks-")
    else:
        name = last
    return ModelSpelling(asked=asked, host=host, path=tuple(path), name=one_spelling(name))


def one_spelling(name: str) -> str:
    """Return `name` normalised for comparison: claude-opus-4.5 and Claude Opus 4-5 are the same."""
    return _VERSION_DOT.sub("-", _BLANK.sub("-", name.lower()))


def is_suffix(rest: str) -> bool:
    """Return whether `rest` can follow a model's name without making it another model: a date, a revision, a route."""
    at = 0
    while at < len(rest):
        found = _SUFFIX.match(rest, at)
        if found is None:
            return False
        at = found.end()
    return True


def is_boundary(name: str, at: int) -> bool:
    """Return whether a word or number ends before position `at` of `name`."""
    if not 0 < at < len(name):
        return True
    before, behind = name[at - 1], name[at]
    return not (before.isalpha() and behind.isalpha()) and not (before.isdigit() and behind.isdigit())
