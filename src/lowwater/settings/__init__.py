"""All settings, each with its type, range, default and description; constructing one with a wrong value fails."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, StructMeta
from msgspec.structs import asdict, fields

from lowwater.errors import BadSetting
from lowwater.settings.coercion import did_you_mean, fit_fields, shown

PolicyName = Literal[  # Lowwater's own; installed packages may add others
    "rent-or-buy",
    "never",
    "threshold",
    "prune-naive",
    "runway",
    "guarded",
    "hygiene",
    "hermes-classic",
]
CacheTtl = Literal["5m", "1h", "auto"]

ABSURD = 10**15
"""Above any real count of tokens, characters or messages, and below the integers that floats cannot represent."""

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, lt=ABSURD)]
Positive = Annotated[int, Meta(ge=1, lt=ABSURD)]
Word = Annotated[str, Meta(pattern=r"\S")]


class SettingsSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of settings; constructing one with an invalid value raises BadSetting."""

    def __post_init__(self) -> None:
        fit_fields(self)


class CompressionSettings(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a conversation is compacted, what is protected, and how long a summary may be."""

    enabled: Annotated[bool, Meta(description="Compact at all; false stops every layer.")] = True
    policy: Annotated[
        PolicyName | Word, Meta(description="The rule that decides when to compact, and how.")
    ] = "rent-or-buy"
    mechanisms: Annotated[
        tuple[Word, ...],
        Meta(description="Mechanisms of installed packages that are asked before Lowwater's own, by name."),
    ] = ()
    threshold: Annotated[
        Share | Literal["auto"],
        Meta(
            description="Share of the context length at which to compact; auto: from measured growth and content mix."
        ),
    ] = 0.50
    target_ratio: Annotated[
        Annotated[float, Meta(ge=0.10, le=0.80)],
        Meta(description="Share of the threshold that the protected tail may fill."),
    ] = 0.20
    protect_last_n: Annotated[Positive, Meta(description="Newest messages that are always kept.")] = 20
    protect_first_n: Annotated[
        Count, Meta(description="First messages that are always kept: system prompt and first exchange.")
    ] = 3
    disturbed_calls: Annotated[
        Annotated[float, Meta(ge=0, le=100)],
        Meta(
            description="Further calls that any compaction is expected to cost until work goes on; part of its price under rent-or-buy."
        ),
    ] = 1.0
    hygiene: Annotated[
        bool,
        Meta(
            description="Compact at 85 % of the context length, whatever the policy: the gateway's safety net."
        ),
    ] = False
    max_view_tokens: Annotated[
        Positive | None, Meta(description="Never show the model more tokens than this; null: no such limit.")
    ] = None
    summary_model: Annotated[
        Word | None,
        Meta(
            description="Model that writes summaries, or a summarizer that is installed; null: the cheapest by arithmetic."
        ),
    ] = None
    summary_ratio: Annotated[
        Share, Meta(description="Length of a summary as a share of what it replaces.")
    ] = 0.20
    summary_min_tokens: Annotated[Count, Meta(description="A summary may always be this long.")] = 2_000
    summary_max_tokens: Annotated[Count, Meta(description="A summary is never longer than this.")] = 12_000
    summary_context_share: Annotated[
        Share, Meta(description="A summary is never longer than this share of the context length.")
    ] = 0.05
    summary_instructions: Annotated[
        Word | None,
        Meta(
            description="What a model that writes a summary is told besides, such as what to keep; "
            "null: nothing. The extractive summary, which asks no model, does not follow it."
        ),
    ] = None
    weak_summaries: Annotated[
        Literal["accept", "refuse"],
        Meta(
            description="Where every summary misses too much: accept the best there is, or refuse to compact."
        ),
    ] = "accept"
    competing_summaries: Annotated[
        bool,
        Meta(description="Ask every summarizer and take the best summary; false: the first that is good."),
    ] = False

    split: Annotated[
        bool,
        Meta(description="Each compaction ends the session and a child goes on; false: it keeps its name."),
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.summary_min_tokens > self.summary_max_tokens:
            raise BadSetting(
                f"summary_min_tokens ({self.summary_min_tokens:,}) must not be above "
                f"summary_max_tokens ({self.summary_max_tokens:,})"
            )


class ToolResultSettings(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to the outputs of tools: which are kept, which are shortened, what stands in their place."""

    elide_limit_chars: Annotated[
        Count | None,
        Meta(
            description="Results up to this many characters are never elided; "
            "null: as the policy has it, 200 in the seed presets and 600 elsewhere."
        ),
    ] = None
    never_prune: Annotated[
        tuple[Word, ...] | None,
        Meta(
            description="Tools, by name or class, whose results are never elided or shortened; "
            "null: as the policy has it, clarify, memory, skill_view, todo and in the seed presets read_file."
        ),
    ] = None
    pinned: Annotated[
        tuple[Word, ...] | None,
        Meta(
            description="Files, by pattern, whose content stays in view once it was read, such as AGENTS.md or docs/rules/*; null: none."
        ),
    ] = None
    digest_ratio: Annotated[
        Share,
        Meta(description="Size of a placeholder's digest as a share of the elided result; 0: no digest."),
    ] = 0.15
    insertion_limit_ratio: Annotated[
        Share,
        Meta(
            description="Results above this share of the context length are shortened on arrival; 0: never."
        ),
    ] = 0.10
    insertion_limit_tokens: Annotated[
        Count, Meta(description="Results above this many tokens are shortened on arrival; 0: never.")
    ] = 25_000


class LeafSettings(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The policy `guarded`: passes over the oldest chunk, and the guards that save the provider's cache."""

    leaf_chunk_tokens: Annotated[
        Positive, Meta(description="Tokens outside the tail that one pass takes.")
    ] = 20_000
    leaf_target_tokens: Annotated[
        Count, Meta(description="Tokens that the summary of one chunk should have.")
    ] = 2_400
    leaf_budget_headroom_factor: Annotated[
        Share,
        Meta(
            description="Skip a pass while the view is below this share of the context threshold; 0: no guard."
        ),
    ] = 0.8
    leaf_skip_reduction_threshold: Annotated[
        Share,
        Meta(description="Skip a pass that removes less than this share of the view; 0: no guard."),
    ] = 0.05
    context_threshold: Annotated[
        Share, Meta(description="Share of the budget at which the view is under pressure.")
    ] = 0.75


class ModelSettings(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the model's provider is used."""

    cache_ttl: Annotated[
        CacheTtl,
        Meta(
            description="Lifetime asked for the provider's prompt cache; auto: by the pauses between calls and the prices."
        ),
    ] = "auto"
    native_compaction: Annotated[
        bool,
        Meta(
            description="Have the provider compact into a signed block of its own where it can and that costs less; "
            "calls must then carry the betas that the request names."
        ),
    ] = False
    bound_thinking: Annotated[
        Literal["strip", "drop"],
        Meta(
            description="Thinking that a model refuses behind a change: strip it, or have the provider drop it "
            "(adaptive thinking only; calls must then carry the betas that the request names)."
        ),
    ] = "strip"


class WarningLevels(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares of the threshold at which each level warns once; null switches a level off."""

    info: Annotated[Share | None, Meta(description="Warns with level info.")] = 0.60
    notice: Annotated[Share | None, Meta(description="Warns with level notice.")] = 0.75
    warning: Annotated[Share | None, Meta(description="Warns with level warning.")] = 0.85
    critical: Annotated[Share | None, Meta(description="Warns with level critical.")] = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        levels = [self.info, self.notice, self.warning, self.critical]
        used = [level for level in levels if level is not None]
        if used != sorted(set(used)):
            raise BadSetting("warning_levels must rise from info over notice and warning to critical")


class OutputSettings(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people and programs are told."""

    quiet: Annotated[bool, Meta(description="Print nothing about compactions.")] = False
    session_logs: Annotated[
        Word | None,
        Meta(description="Directory for a log file per session, numbers only; null: none."),
    ] = None
    warning_levels: Annotated[
        WarningLevels,
        Meta(description="Shares of the threshold at which to warn: info, notice, warning, critical."),
    ] = WarningLevels()


class PrivacySettings(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept out of what Lowwater writes; a request to the model itself is never altered."""

    redact: Annotated[
        bool, Meta(description="Keep secrets (keys, tokens) out of the search index, summaries and exports.")
    ] = True


class FallbackProvider(SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that takes over when the one before it fails."""

    model: Annotated[Word, Meta(description="The model's name at its provider.")]
    base_url: Annotated[str | None, Meta(description="Where its API is; null: the provider's own.")] = None
    provider: Annotated[str | None, Meta(description="Whose it is; null: from the model's name.")] = None
    api_key_env: Annotated[
        str | None, Meta(description="Environment variable that holds the key; never the key itself.")
    ] = None


class _FlatOrNested(StructMeta):
    """Lets `Settings` be called with the settings themselves, with sections, or with both."""

    def __call__(cls, **given: object) -> Any:  # noqa: ANN401, N805 - a metaclass; what it makes has the class's own type
        nested: dict[str, object] = {}
        for name, value in given.items():
            if name not in _SECTION_OF and name not in cls.__struct_fields__:
                hint = did_you_mean(name, (*_SECTION_OF, *cls.__struct_fields__))
                raise BadSetting(f"there is no setting {shown(name)}{hint}")
            if name not in _SECTION_OF:
                nested[name] = value
        for name in given.keys() - nested.keys():
            section = _SECTION_OF[name]
            chosen = given.get(section)
            if isinstance(chosen, Mapping) and name in chosen:
                raise BadSetting(f"{name} is given twice: by itself and in {section}")
            others = nested.get(section, {})
            others = asdict(others) if isinstance(others, Struct) else others
            nested[section] = {**others, name: given[name]} if isinstance(others, Mapping) else others
        return super().__call__(**nested)


class Settings(
    SettingsSection, frozen=True, kw_only=True, forbid_unknown_fields=True, metaclass=_FlatOrNested
):
    """All settings of Lowwater: `Settings(max_view_tokens=60_000)`, or in the sections of lowwater.yaml.

    A section may be given as a mapping: `Settings(compression={"max_view_tokens": 60_000})`.
    """

    if TYPE_CHECKING:

        def __init__(self, **settings: object) -> None: ...

    compression: CompressionSettings = CompressionSettings()
    tool_results: ToolResultSettings = ToolResultSettings()
    leaf: LeafSettings = LeafSettings()
    model: ModelSettings = ModelSettings()
    output: OutputSettings = OutputSettings()
    privacy: PrivacySettings = PrivacySettings()
    fallback_providers: Annotated[
        tuple[FallbackProvider, ...], Meta(description="Models to fall back to, in order.")
    ] = ()


EVERYDAY = frozenset(
    {
        "enabled",
        "policy",
        "threshold",
        "protect_last_n",
        "max_view_tokens",
        "summary_model",
        "split",
        "never_prune",
        "insertion_limit_tokens",
        "cache_ttl",
        "native_compaction",
        "quiet",
        "session_logs",
        "redact",
        "fallback_providers",
    }
)
"""The settings that a user may have a reason to change. The others are expert settings, which are listed apart."""

_SECTIONS: dict[str, type[SettingsSection]] = {
    "compression": CompressionSettings,
    "tool_results": ToolResultSettings,
    "leaf": LeafSettings,
    "model": ModelSettings,
    "output": OutputSettings,
    "privacy": PrivacySettings,
}
_SECTION_OF = {field.name: name for name, section in _SECTIONS.items() for field in fields(section)}
"""The section of each setting; no two settings have one name."""
