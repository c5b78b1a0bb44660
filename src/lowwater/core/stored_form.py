"""The form in which sessions are stored: its version, and the name of every field as stored.

Stores hold msgpack and exports hold JSON, both with these names. A stored class takes its names from here
(`rename=stored_as("rewound")`), so an attribute or a class can be renamed without changing what is stored:
write `discard_later=drops_later` where the attribute that is stored as `discard_later` is now called `drops_later`.
An attribute that is missing here cannot be defined. Tags are written on the classes (`tag="rewound"`), and
`tests/stores/stored.txt` lists everything that is frozen.

A name that was stored once is never given another meaning. Whoever adds a field to the state, or changes the meaning
of one, raises `FORM`, and an older Lowwater then refuses the state instead of losing part of it. Whoever adds a field or
a tag to anything else adds a migration to the stores, which has the same effect.
"""

from collections.abc import Callable, Mapping

FORM = 2
"""The version of the form, stored with the state of each session; states without it are in form 1."""

FORMER_POLICIES: Mapping[str, str] = {"summary-only": "threshold"}
"""Names of policies that stores may contain, and what the same policy is called now."""

_FIELDS: Mapping[str, str] = {
    # ledger entries, by tag
    "opened": "at model vocabulary",
    "appended": "at keys tokens",
    "preamble_changed": "at system tools tokens",
    "model_changed": "at model",
    "compacted": "at mechanisms stands=items",
    "compacted_since": "at mechanisms base depth pieces",
    "rewound": "at to discard_later",
    "taken_back": "at numbers",
    "checkpointed": "at name",
    # an export has the messages in the entry instead of their keys
    "exported_appended": "at messages tokens",
    # the items of a view after a compaction, by tag
    "kept": "numbers",
    "altered": "number edits tokens",
    "summarized": "text role sources tokens depth block",
    "numbers": "first last",
    "edit": "path by",
    "copied": "first count",
    # messages, and their parts by tag
    "message": "role parts name wire memo",
    "wire": "format raw exact",
    "part": "extra",
    "text": "extra text",
    "image": "extra source data media_type detail",
    "document": "extra source data media_type title",
    "tool_call": "extra id name arguments",
    "tool_result": "extra call_id parts is_error",
    "thinking": "extra text signature redacted",
    "opaque": "extra block body",
    # turn records, and events by tag
    "turn_record": "at model usage expected cost untouched removed decision thinking_off recall estimated",
    "recall_use": "searches expands found named",
    "usage": "uncached cache_read cache_write cache_write_long output",
    "compaction": "at model mode mechanisms because before after items_before items_after first_changed disturbed"
    " summary_tokens summarizer score repaired_score seconds phases number cost rejected price saves summary_prompts",
    "skip": "at because prompt rejected summary_prompts",
    "reason": "code facts",
    "phase": "mechanism removed",
    "rejected": "by code missing first_missing said=error score",
    # what is known about a session besides its ledger
    "about": "title source parent ended_at ended_because",
    # the state of a session between two calls
    "state": "form format assumed=assumed_format past standing=summarizer_backoff totals"
    " reported=reported_prompt windows=caller_windows taught=learned_windows budget doubted=doubted_prompt"
    " sent=sent_tokens growth growths=growth_turns grown=recent_growth warned decision"
    " last=last_compaction parked=prefetched_summary policy max_tokens belief misjudged=belief_error"
    " meter ahead=uncharged_summary_cost ahead_prompts=unreported_summary_prompts"
    " ahead_rejected=unreported_rejections"
    " bought=compaction_surcharge kept_out=removed_tokens held_until=paused_until"
    " rest=recheck_backoff outside=newest_outside_tail called_at gaps parameters offers_recall"
    " noted=has_system_note binds_thinking thinking_off pins instructions_read"
    " experience unbound=thinking_unbound_above route calibration",
    "experience": "expected observed before upto",
    "pin": "text number source status survives",
    "past": "compactions turns_since fruitless floor fruitless_at undelivered failed_at failures",
    "standing": "first low since no_block_since",
    "totals": "turns prompt cache_read output misjudged compactions prunes summaries summary_tokens reclaimed"
    " earliest_changed cost summary_cost thinking_off",
    "route": "model base_url",
    "rest": "until prompt",
    "calibration": "prior grown_counted grown_reported recent",
    "observation": "counted reported",
    "belief": "boundaries misses",
    "boundary": "key tokens used long",
    "belief_error": "expected_read expected_write reported_read reported_write",
    "meter": "total numbers readings",
    # decisions, by tag
    "keep": "because",
    "compact": "proposals because enough below fit",
    "proposal": "mechanism removes first_changed survives targets span calls",
    "target": "item path tokens how by",
    "span": "start stop",
    # a prefetched summary
    "parked": "span numbers previous recall tokens judged",
    "judged": "written verdict",
    "written": "text by cut_off usage model block",
    "verdict": "accepted because score missing coverage repaired_score",
    "critical": "kind text words",
}
"""The fields of each stored class, in order: the stored name, and after `=` the attribute if its name differs."""


def stored_names(stored: str) -> dict[str, str]:
    """Return the attributes of a stored class, in order, each with the name it is stored under."""
    return names_in(_FIELDS[stored])


def names_in(fields: str) -> dict[str, str]:
    """Return the attributes in a line of the table, each with the name it is stored under."""
    pairs = (field.partition("=") for field in fields.split())
    return {attribute or name: name for name, _, attribute in pairs}


def stored_as(stored: str) -> Callable[[str], str]:
    """Return the function for `rename=` that maps an attribute to its stored name; it raises TypeError for an unknown one."""
    names = stored_names(stored)

    def stored_name(attribute: str) -> str:
        if attribute not in names:
            raise TypeError(
                f"the attribute {attribute!r} has no name in the stored form of {stored!r}: add it in stored_form.py"
            )
        return names[attribute]

    return stored_name


def all_stored() -> tuple[str, ...]:
    """Return the names of all stored classes."""
    return tuple(_FIELDS)
