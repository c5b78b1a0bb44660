"""Reading shell commands: what was run, without the plumbing around it, and what for."""

import re
from functools import lru_cache
from typing import Literal

from lowwater.compact.summary.phrases import flat
from lowwater.compact.summary.story import Step

Purpose = Literal["test", "build", "check", "view", "commit", "publish", "other"]

_READ = 2_000
"""Characters of a command that say what it is; what follows is a script or a document."""
_SHELLS = re.compile(r"^(?:/\S*/)?(?:ba|z)?sh\s+-l?c\s+(['\"]?)(?P<inner>.*)\1$", re.DOTALL)
_PREFIX = re.compile(
    r"""^(?:\(\s*)?(?:
      cd\s+(?:"[^"]*"|'[^']*'|\S+)\s*(?:&&|;)\s*
    | (?:export\s+)?[A-Z_][A-Z0-9_]*=(?:"[^"]*"|'[^']*'|\S*)\s*(?:&&|;)?\s+
    | (?:timeout|time|sudo|nohup|env|stdbuf)\s+(?:-\S+\s+)*(?:\d+[smh]?\s+)?
    | (?:source|sleep)\s+\S+\s*(?:&&|;)\s*
    | set\s+-\S+\s*(?:&&|;)?\s*
    )""",
    re.VERBOSE,
)
_PLUMBING = re.compile(
    r"""\s*(?:
      \d?>&\d | &?>>?\s*\S+ | 2>\s*\S+
    | \|\s*(?:tail|head|grep|sed|awk|tee|cat|less|sort|wc|tr|cut|uniq)\b[^|]*
    | \|\|\s*(?:true|echo\b.*) | ;\s*echo\b.*
    )$""",
    re.DOTALL | re.VERBOSE,
)
_RUNNERS = "go cargo npm pnpm yarn bun deno mvn gradle gradlew dotnet swift mix zig make mise just task nx turbo docker"
_RUNS = rf"\b(?:{_RUNNERS.replace(' ', '|')})\b[^|&;\n]*?\b"
_PURPOSES: tuple[tuple[Purpose, re.Pattern[str]], ...] = (
    ("commit", re.compile(r"\bgit\b(?:\s+-\S+(?:\s+[^-\s]\S*)?)*\s+commit\b")),
    (
        "publish",
        re.compile(
            r"\b(?:git\s+(?:\S+\s+)*?push|gh\s+(?:pr|issue)\s+(?:create|merge|close|comment|edit)|npm publish|twine upload)\b"
        ),
    ),
    (
        "test",
        re.compile(
            r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|gotestsum)\b"
            rf"|{_RUNS}(?:run\s+)?tests?\b"
        ),
    ),
    (
        "check",
        re.compile(
            r"\b(?:ruff|mypy|pyright|flake8|pylint|eslint|biome|prettier|golangci-lint|gofmt|clippy|tsc|shellcheck)\b"
            rf"|{_RUNS}(?:lint|typecheck|type-check|fmt|vet|check|format)\b"
        ),
    ),
    ("build", re.compile(rf"{_RUNS}(?:build|install|compile)\b|^make\b|\bpip install\b|\bcmake\b")),
    (
        "view",
        re.compile(
            r"^(?:cat|sed|head|tail|nl|less|bat|grep|egrep|rg|ag|find|fd|ls|tree|wc|awk|jq|echo|printf|pwd|which|stat|diff|history"
            r"|git\s+(?:\S+\s+)??(?:diff|show|log|blame|status|branch|grep|ls-files|rev-parse|remote|stash list)"
            r"|gh\s+(?:pr|issue|run|api|search|repo)\s+\S+)\b"
        ),
    ),
)


def command_of(step: Step) -> str:
    """Return the command a shell step ran, as written; nothing for any other step."""
    return step.subject if step.kind == "shell" else ""


def bare(command: str) -> str:
    """Return a command on one line without changes of directory, variables, redirections and filters around it."""
    start = command.strip()[:_READ]
    shell = _SHELLS.match(start)
    line = (shell["inner"] if shell else start).strip()
    while True:
        shorter = _PREFIX.sub("", line, count=1)
        if shorter == line:
            break
        line = shorter
    while True:
        shorter = _PLUMBING.sub("", line)
        if shorter == line:
            break
        line = shorter
    return flat(line)


def aim_of(step: Step) -> Purpose:
    """Return what a step's command is for; a step without one has no purpose of its own."""
    return _aim_of(command_of(step).strip()[:_READ]) if step.kind == "shell" else "other"


@lru_cache(maxsize=512)
def _aim_of(command: str) -> Purpose:
    return purpose(bare(command))


def purpose(command: str) -> Purpose:
    """Return what a bare command is for; heredocs and scripts count by their first line."""
    line = command[:400]
    return next((name for name, pattern in _PURPOSES if pattern.search(line)), "other")
