"""`lowwater statusline`: a session in one line, for Claude Code's status line or a terminal's status bar."""

import json
import os
import shlex
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.cli.command import say
from lowwater.cli.stored_sessions import StoreAddress, opened_store
from lowwater.cli.wording import amount, cached_until, on_one_line, short, span
from lowwater.core.accounts.efficiency import total_of
from lowwater.core.stored import Account, Listed
from lowwater.errors import BadInput, LowwaterError
from lowwater.gateway.options import OWN_TENANT, SOURCE, is_loopback, project_at, source_of
from lowwater.gateway.session_lookup import hint_key
from lowwater.protocols import Store

BACKUP = ".before-lowwater"
"""What is appended to the name of Claude Code's settings file for the copy that is made before a change."""
_REFRESH = 30
"""Seconds after which Claude Code runs the command again, so that the countdown of the cache goes on."""
_FIELD = "statusLine"
_HEADER = "x-claude-code-session-id"
_NO_SESSION = "Lowwater is not in this session · lowwater run -- claude"
_NO_ANSWER = "Lowwater: no answer yet"
Json = dict[str, object]


class _Asked(Struct, frozen=True, kw_only=True):
    """The part that is needed of what Claude Code passes to its status line."""

    session_id: str = ""


def statusline(
    action: Annotated[
        Literal["install", "remove"] | None,
        typer.Argument(metavar="[install|remove]", help="Add it to Claude Code's settings, or remove it."),
    ] = None,
    *,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace another status line; remove restores that one."),
    ] = False,
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Claude Code's settings, if not ~/.claude/settings.json."),
    ] = None,
    store: StoreAddress = "",
) -> None:
    """Print a session in one line: its size, cache, savings, and how to undo.

    Once it is installed, Claude Code shows the line below its prompt. For other
    clients, the terminal's status bar can show it; it is then about the newest
    session of the folder's project. Installing changes nothing else in the
    settings, and keeps a copy of the file beside it.

    lowwater statusline install
    lowwater statusline remove
    tmux set -g status-right '#(cd "#{pane_current_path}" && lowwater statusline)'
    """
    if action is None:
        typer.echo(_line_said(_stdin(), store))
        return
    path = (settings or _settings_path()).expanduser()
    if action == "install":
        install(path, _command(store), replace=replace)
    else:
        remove(path)


# The line


def _stdin() -> bytes:
    """Return what the client passes; nothing on a terminal."""
    return b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read(1 << 20)


def _line_said(given: bytes, address: str) -> str:
    """Return the line; an error of the store is reported in it, because clients show nothing else."""
    asked = _Asked()
    with suppress(msgspec.MsgspecError):
        asked = msgspec.json.decode(given, type=_Asked)
    try:
        with opened_store(address, is_needed=False) as store:
            found = _session(store, asked.session_id)
            account = next(iter(store.accounts([found.name])), None) if found else None
    except LowwaterError as error:
        return f"Lowwater: {on_one_line(str(error), 100)}"
    if account is None or not account.records:
        base = os.environ.get("ANTHROPIC_BASE_URL", "")
        host = base.partition("://")[2].partition("/")[0].rpartition(":")[0]
        return _NO_ANSWER if host and is_loopback(host) else _NO_SESSION
    return line_of(account, now=time.time())


def _session(store: Store, client_id: str) -> Listed | None:
    """Return the session of the client's conversation; without an id, the newest of this folder's project, or of all."""
    known = store.sessions()
    if not client_id:
        here = source_of(OWN_TENANT, project_at(Path.cwd()))
        return next((each for each in known if each.about.source == here), next(iter(known), None))
    tenants = dict.fromkeys(
        [
            OWN_TENANT,
            *(
                each.about.source.split(":")[1]
                for each in known
                if each.about.source.startswith(f"{SOURCE}:")
            ),
        ]
    )
    key = hint_key(f"{_HEADER}={client_id}")
    for tenant in tenants:
        names = {each.session for each in store.lookup_fingerprints(tenant, [key])}
        if names:
            return next((each for each in known if each.name in names), None)
    return None


def line_of(account: Account, *, now: float) -> str:
    """Return an account's line: the prompt in its window, the cache, what compaction saved, and how to undo it."""
    registry = load_registry()
    total, last = total_of(account, registry), account.records[-1]
    model = registry.find(last.model)
    usage = last.usage or last.expected
    parts = [] if usage is None else [f"{short(usage.prompt)} of {short(model.context_length)}"]
    until = cached_until(account.records, registry.find(account.session.model))
    if until is not None:
        left = until - now
        parts.append(f"cache warm {span(left)}" if left > 0 else "cache cold")
    if not total.passes:
        return " · ".join([*parts, f"{amount(total.cost)} so far", "not compacted"])
    net = total.net
    if net is not None:
        parts.append(f"saved {amount(net)}" if net >= 0 else f"compacting cost {amount(-net)} so far")
    return " · ".join([*parts, f"undo: lowwater rewind {on_one_line(account.session.name, 40)}"])


# Claude Code's settings


def _settings_path() -> Path:
    folder = os.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    return (Path(folder) if folder else Path.home() / ".claude") / "settings.json"


def _command(store: str) -> str:
    """Return the command for Claude Code to run: `lowwater` if that is on the PATH, else this interpreter."""
    by_name = (
        ["lowwater"] if shutil.which("lowwater") else [Path(sys.executable).as_posix(), "-m", "lowwater"]
    )
    return shlex.join([*by_name, "statusline", *(["--store", store] if store else [])])


def install(path: Path, command: str, *, replace: bool = False) -> None:
    """Add the status line to Claude Code's settings; everything else in them stays byte for byte.

    Another status line is replaced only with `replace`; `remove` restores it from the copy made here.
    """
    text = _read(path)
    settings, wanted = (
        _object(path, text),
        {"type": "command", "command": command, "refreshInterval": _REFRESH},
    )
    there = settings.get(_FIELD)
    if there == wanted:
        say(f"the status line is already in {path}")
        return
    if there is not None and not _is_ours(there) and not replace:
        raise BadInput(f"{path} has another status line: --replace replaces it, and remove restores it")
    if text and not (there is not None and _is_ours(there)):
        _write(path.with_name(path.name + BACKUP), text)
    _write(path, _with_field(text, wanted) if there is None else _dumped({**settings, _FIELD: wanted}, text))
    say(
        f"the status line is in {path}: Claude Code shows it from its next answer on; `lowwater statusline remove` removes it"
    )


def remove(path: Path) -> None:
    """Remove the status line, and restore the one that it replaced."""
    text = _read(path)
    settings = _object(path, text)
    if not _is_ours(settings.get(_FIELD)):
        say(f"there is no status line of Lowwater in {path}")
        return
    backup = path.with_name(path.name + BACKUP)
    before = _object(backup, _read(backup)).get(_FIELD)
    if before is not None and not _is_ours(before):
        _write(path, _dumped({**settings, _FIELD: before}, text))
    elif len(settings) == 1 and not backup.exists():
        path.resolve().unlink()
    else:
        left = {name: value for name, value in settings.items() if name != _FIELD}
        cut = _without_field(text)
        _write(path, cut if cut != text and _object(path, cut) == left else _dumped(left, text))
    backup.unlink(missing_ok=True)
    say(f"the status line was removed from {path}")


def _is_ours(value: object) -> bool:
    return (
        isinstance(value, dict)
        and "lowwater" in str(value.get("command"))
        and "statusline" in str(value.get("command"))
    )


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from None


def _object(path: Path, text: str) -> Json:
    """Return the settings as values; raise BadInput if they are not a JSON object, so that nothing in them is lost."""
    try:
        found = json.loads(text.removeprefix("\ufeff")) if text.strip() else {}
    except ValueError as error:
        raise BadInput(f"{path} is not valid JSON ({error}): correct it first; nothing was changed") from None
    if not isinstance(found, dict):
        raise BadInput(f"{path} does not hold a JSON object: nothing was changed")
    return found


def _indent(text: str) -> str:
    """Return the indentation of the first line inside the object."""
    inside = text.partition("{")[2].lstrip("\r").removeprefix("\n")
    return inside[: len(inside) - len(inside.lstrip(" \t"))] if "\n" in text.strip() else "  "


def _field_text(text: str, value: object) -> str:
    """Return the text that adds the field behind the last one."""
    line = "\r\n" if "\r\n" in text else "\n"
    indent = _indent(text)
    body = json.dumps(value, indent=indent or 2, ensure_ascii=False).replace("\n", line + indent)
    first = "," if _object(Path(_FIELD), text) else ""
    return f'{first}{line}{indent}"{_FIELD}": {body}'


def _with_field(text: str, value: object) -> str:
    """Return the settings' text with the field added at its end; no other byte changes."""
    if not text.strip():
        return _dumped({_FIELD: value}, text)
    inside = text.rstrip().removesuffix("}").rstrip()
    return f"{inside}{_field_text(text, value)}{text[len(inside) :]}"


def _without_field(text: str) -> str:
    """Return the text without the field, which has to be its last one, where `_with_field` puts it."""
    name = f'"{_FIELD}":'
    at = text.rfind(name)
    value = text[at + len(name) :].lstrip()
    length = json.JSONDecoder().raw_decode(value)[1]
    return text[:at].rstrip().removesuffix(",") + value[length:]


def _dumped(settings: Json, like: str) -> str:
    """Return settings as text, with the indentation and line ends of the text that they come from."""
    text = json.dumps(settings, indent=_indent(like) or 2, ensure_ascii=False) + "\n"
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _write(path: Path, text: str) -> None:
    """Replace a file atomically; a symbolic link, as dotfiles often are, stays one."""
    real = path.resolve()
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        new = real.with_name(f"{real.name}.{os.getpid()}.new")
        new.write_bytes(text.encode())
        if real.exists():
            shutil.copymode(real, new)
        new.replace(real)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None
