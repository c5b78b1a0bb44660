"""Removing what nobody said: terminal codes, reminders and notices that a harness put into messages."""

import re

from lowwater.values.message import Message
from lowwater.values.parts import Text

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)
_HARNESS_TAGS = (
    "system-reminder system_reminder local-command-caveat local-command-stdout local-command-stderr command-name "
    "command-message environment_context environment_details user_instructions turn_aborted user_shell_command "
    "task-notification system_notification current_datetime bash-stdout bash-stderr bash-input skill "
    "ide_opened_file ide_selection user-prompt-submit-hook "
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
    | (?:Stop|SubagentStop|PreToolUse|PostToolUse|UserPromptSubmit|SessionStart)(?::\S+)?
      \ hook\ (?:feedback|(?:success|additional\ context|blocking\ error|stopped\ continuation):)
    | Called\ the\ \w+\ tool\ with\ the\ following\ input:
    | This\ is\ the\ Gemini\ CLI\.\ We\ are\ setting\ up\ the\ context
    | The\ user\ (?:doesn't|did\ not)\ want\ to\ proceed\ with\ this\ tool
    | Your\ task\ is\ to\ create\ a\ detailed\ summary
    | Continue\ the\ conversation\ from\ where\ (?:it|we)\ left\ off
    )""",
    re.VERBOSE,
)
_COMMAND = re.compile(
    r"""\s*<command-message>[^<]*</command-message>\s*<command-name>(?P<name>[^<]*)</command-name>
    (?:\s*<command-args>(?P<args>.*?)</command-args>)?""",
    re.VERBOSE | re.DOTALL,
)
"""How Claude Code writes down a slash command whose prompt it sends as the next text."""
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


def own_words(message: Message) -> str:
    """Return what the user said in a message of the user's role; empty if all of it comes from tools or the harness.

    Harnesses put reminders, notifications, hook output and the prompts of slash commands into such messages, as texts of
    their own or inside a text. Of a slash command only its name and arguments are the user's.
    """
    said_so_far: list[str] = []
    is_prompt_of_command = False
    for part in message.parts:
        if not isinstance(part, Text):
            continue
        command = _COMMAND.match(part.text)
        if command:
            said_so_far.append(f"{command['name'].strip()} {command['args'] or ''}".strip())
        elif not is_prompt_of_command and (words := said(part.text)):
            said_so_far.append(words)
        is_prompt_of_command = command is not None
    return "\n".join(said_so_far)
