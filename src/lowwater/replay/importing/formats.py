"""The formats that recordings are known in, the more particular ones first."""

from lowwater.replay.importing.canonical import Canonical
from lowwater.replay.importing.claude_code import ClaudeCode
from lowwater.replay.importing.codex import Codex
from lowwater.replay.importing.copilot_cli import CopilotCli
from lowwater.replay.importing.detect import Format
from lowwater.replay.importing.gemini_cli import GeminiCli
from lowwater.replay.importing.hermes import Hermes
from lowwater.replay.importing.message_lists import MessageLists
from lowwater.replay.importing.opencode import OpenCodeDatabase, OpenCodeFiles
from lowwater.replay.importing.own_exports import OwnExports
from lowwater.replay.importing.request_logs import RequestLogs
from lowwater.replay.importing.swe_agent import SweAgent

FORMATS: tuple[Format, ...] = (
    ClaudeCode(),
    Codex(),
    CopilotCli(),
    GeminiCli(),
    Canonical(),
    OwnExports(),
    Hermes(),
    OpenCodeDatabase(),
    OpenCodeFiles(),
    SweAgent(),
    RequestLogs(),
    MessageLists(),
)
