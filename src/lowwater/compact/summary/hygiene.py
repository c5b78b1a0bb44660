"""Removing what nobody said: terminal codes, reminders and notices that a harness put into messages."""

import re

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)
_HARNESS_TAGS = (
    "system-reminder system_reminder local-command-caveat local-command-stdout local-command-stderr command-name "
    "command-message environment_context environment_details user_instructions instructions turn_aborted "
    "task-notification bash-stdout bash-stderr bash-input skill ide_opened_file ide_selection user-prompt-submit-hook "
    "permissions collaboration_mode apps_instructions skills_instructions subagent_notification persisted-output "
    "retrieval_status tool_use_error function_results"
)
_BLOCK = re.compile(
    r"<(?P<tag>{})(?:\s[^<>]*)?>.*?(?:</(?P=tag)\s*>|\Z)".format("|".join(_HARNESS_TAGS.split())),
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"^[ \t]*</?[A-Za-z][\w-]*(?:\s[^<>\n]*)?/?>|</[A-Za-z][\w-]*>[ \t]*$", re.MULTILINE)
"""Tags that begin or end a line: markup of a prompt, not something a sentence is about."""
_NOTICE = re.compile(
    r"""\s*(?:
      This\ session\ is\ being\ continued\ from\ a\ previous
    | Base\ directory\ for\ this\ skill:
    | Caveat:\ The\ messages\ below
    | \[Request\ interrupted
    | \[native\ compaction
    | \[(?:image|Image)[^\]]*\]\s*\Z
    | \#\ AGENTS\.md\ instructions
    | Operation\ stopped\ by\ hook
    | (?:Stop|PreToolUse|PostToolUse|UserPromptSubmit)\ hook\ feedback
    | The\ user\ (?:doesn't|did\ not)\ want\ to\ proceed\ with\ this\ tool
    | Your\ task\ is\ to\ create\ a\ detailed\ summary
    | Continue\ the\ conversation\ from\ where\ (?:it|we)\ left\ off
    )""",
    re.VERBOSE,
)
_IMAGE = re.compile(r"\[image[^\]\n]*\]", re.IGNORECASE)
_RUNS_OF_BLANK_LINES = re.compile(r"\n\s*\n+")


def plain(text: str) -> str:
    """Return `text` without terminal codes and other control characters."""
    if text.isprintable() or text.replace("\n", " ").replace("\t", " ").isprintable():
        return text
    return _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def untagged(text: str) -> str:
    """Return `text` without terminal codes and tags; what stands between tags stays."""
    return _TAG.sub(" ", plain(text))


def said(text: str) -> str:
    """Return what a person or the model itself said in a message, without what a harness injected; maybe nothing."""
    bare = plain(text)
    if _NOTICE.match(bare):
        return ""
    if "<" in bare:
        bare = _TAG.sub(" ", _BLOCK.sub(" ", bare))
        if _NOTICE.match(bare):
            return ""
    bare = _IMAGE.sub(" ", bare) if "[" in bare else bare
    return _RUNS_OF_BLANK_LINES.sub("\n\n", bare).strip()
