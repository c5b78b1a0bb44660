"""How each family of models is counted: vocabulary, framing, what becomes of thinking, and the expected scale.

A family is told by the longest prefix of the model's own name. Every figure says where it comes from.
"""

from typing import Literal

from msgspec import Struct

from lowwater.count.framing import CHAT, CLAUDE, Framing
from lowwater.values.model_names import is_boundary, read_name


class CountingRules(Struct, frozen=True, kw_only=True):
    """What is known about counting for one family before its first usage comes in."""

    prefix: str
    """In one spelling: lower case, versions with dashes."""
    vocabulary: str
    framing: Framing = CHAT
    scale: float = 1.0
    """By how much the reported prompt grows when the count grows by one: where a session's calibration starts."""
    thinking: Literal["kept", "turn"] = "kept"
    """Whether thinking stays in later prompts, or only until the user's next message."""
    source: str = ""


_CLAUDE_4 = (
    "bench.counting framing: prompts of recorded sessions grow 1.17 to 1.20 times the count on Opus 4.5 and 4.6 and Sonnet 4.5;"
    " Sonnet 4.5 drops thinking at the user's next message, Opus 4.5 and 4.6 do not"
)
_CLAUDE_NEW = (
    "derived: prompts of Opus 4.7 and later grow 2.1 times the visible text where those of Opus 4.5 and 4.6 grow 1.3"
    " times in recorded sessions, with the latter's 1.19 on counts with framing; not measured"
)
_OPENAI = (
    "between what recorded Codex sessions show within a turn, 1.06 (bench.counting framing), where reasoning stays in the"
    " prompt, and the loss of it at the user's next message"
)
_OWN = "the maker's own vocabulary; scale not measured"

DEFAULT = CountingRules(
    prefix="",
    vocabulary="o200k",
    source="assumed of a model that no row knows: a vocabulary of the usual size",
)

RULES: tuple[CountingRules, ...] = (
    DEFAULT,
    CountingRules(prefix="gpt", vocabulary="o200k", scale=1.03, source=_OPENAI),
    CountingRules(prefix="codex", vocabulary="o200k", scale=1.03, source=_OPENAI),
    CountingRules(prefix="gpt-4", vocabulary="cl100k", source="OpenAI's published vocabulary for GPT-4"),
    CountingRules(prefix="gpt-4o", vocabulary="o200k", source="OpenAI's published vocabulary for GPT-4o"),
    CountingRules(prefix="gpt-4-1", vocabulary="o200k", source="OpenAI's published vocabulary for GPT-4.1"),
    CountingRules(prefix="gpt-4-5", vocabulary="o200k", source="OpenAI's published vocabulary for GPT-4.5"),
    CountingRules(prefix="gpt-3-5", vocabulary="cl100k", source="OpenAI's published vocabulary for GPT-3.5"),
    CountingRules(prefix="claude", vocabulary="o200k", framing=CLAUDE, scale=1.9, source=_CLAUDE_NEW),
    *(
        CountingRules(
            prefix=prefix, vocabulary="o200k", framing=CLAUDE, scale=1.18, thinking="turn", source=_CLAUDE_4
        )
        for prefix in (
            "claude-2",
            "claude-3",
            "claude-opus-4",
            "claude-sonnet-4",
            "claude-haiku-4",
        )
    ),
    *(
        CountingRules(prefix=prefix, vocabulary="o200k", framing=CLAUDE, scale=1.18, source=_CLAUDE_4)
        for prefix in ("claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-6")
    ),
    *(
        CountingRules(prefix=prefix, vocabulary="o200k", framing=CLAUDE, scale=1.9, source=_CLAUDE_NEW)
        for prefix in ("claude-opus-4-7", "claude-opus-4-8", "claude-opus-4-9")
    ),
    *(
        CountingRules(prefix=prefix, vocabulary=vocabulary, source=_OWN)
        for prefix, vocabulary in (
            ("qwen", "qwen3"),
            ("qwq", "qwen3"),
            ("llama", "llama3"),
            ("meta-llama", "llama3"),
            ("deepseek", "deepseek"),
            ("glm", "glm"),
            ("kimi", "kimi"),
            ("moonshot", "kimi"),
            ("mistral", "mistral"),
            ("magistral", "mistral"),
            ("ministral", "mistral"),
            ("codestral", "mistral"),
            ("devstral", "mistral"),
            ("pixtral", "mistral"),
        )
    ),
)


def rules_for(model: str) -> CountingRules:
    """Return how `model` is counted, however its name is spelled; an unknown one gets the default."""
    name = read_name(model).name
    fitting = [
        rules for rules in RULES if name.startswith(rules.prefix) and is_boundary(name, len(rules.prefix))
    ]
    return max(fitting, key=lambda rules: len(rules.prefix))
