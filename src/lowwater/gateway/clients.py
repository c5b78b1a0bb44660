"""How each client is pointed to the gateway: by environment variables, by arguments, or by both."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Struct

from lowwater.gateway.options import ANTHROPIC, OPENAI

OPENROUTER = "https://openrouter.ai/api/v1"

_BASE_URL_VARIABLES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_TOOL_SEARCH = "ENABLE_TOOL_SEARCH"
_ANTHROPIC_HOST = "anthropic.com"


class Started(Struct, frozen=True, kw_only=True):
    """A client's command line and the environment variables to add for it."""

    command: tuple[str, ...]
    env: dict[str, str]


def client_of(command: Sequence[str]) -> str:
    """Return the name of the client that a command starts."""
    name = PurePath(command[0]).name if command else ""
    # npm installs a client as `claude.cmd` on Windows.
    return re.sub(r"\.(?:exe|cmd|bat)$", "", name, flags=re.IGNORECASE)


class UpstreamUrls(Struct, frozen=True, kw_only=True):
    """The base URLs of the providers that a client uses."""

    anthropic: str
    openai: str


def upstream_in(env: Mapping[str, str], client: str = "") -> UpstreamUrls:
    """Return the base URLs that a client would have used without the gateway."""
    anthropic, openai = (env.get(name, "").strip() for name in _BASE_URL_VARIABLES)
    if client == "hermes":
        openai = _hermes_base_url(env) or openai
    return UpstreamUrls(anthropic=anthropic or ANTHROPIC, openai=openai or OPENAI)


def started(command: Sequence[str], url: str, env: Mapping[str, str]) -> Started:
    """Return a client's command and variables so that all its requests go to the gateway at `url`."""
    versioned = f"{url}/v1"
    variables = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_BASE": url,
        "OPENAI_BASE_URL": versioned,
        "OPENAI_API_BASE": versioned,
    }
    variables |= _around_proxies(url, env)
    arguments: tuple[str, ...] = ()
    match client_of(command):
        case "claude":
            variables |= _claude(env)
        case "codex":
            arguments = _codex(versioned, env)
        case "opencode":
            variables["OPENCODE_CONFIG_CONTENT"] = _opencode(
                versioned, env.get("OPENCODE_CONFIG_CONTENT", "")
            )
        case "hermes":
            variables |= {"CUSTOM_BASE_URL": versioned, "OPENROUTER_BASE_URL": versioned}
        case _:
            pass
    return Started(command=(command[0], *arguments, *command[1:]), env=variables)


def _around_proxies(url: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that keep a client from using its proxy for the gateway; none if it has no proxy.

    Some clients use the proxy for HTTPS for every URL, and ask it for 127.0.0.1.
    """
    if not any(value and name.lower() in _PROXIES for name, value in env.items()):
        return {}
    host = urlsplit(url).hostname or ""
    before = env.get("no_proxy") or env.get("NO_PROXY") or ""
    listed = ",".join(each for each in (before.strip(), host) if each)
    return {"NO_PROXY": listed, "no_proxy": listed}


def _claude(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make Claude Code send the same requests as without a gateway.

    With a base URL that is not Anthropic's it turns its tool search off and sends all its tools, unless this variable is set.
    It is not set for a user who has configured another provider, which may not know the blocks of the tool search.
    """
    host = urlsplit(upstream_in(env, "claude").anthropic).hostname or ""
    is_anthropic = host == _ANTHROPIC_HOST or host.endswith(f".{_ANTHROPIC_HOST}")
    return {_TOOL_SEARCH: "true"} if is_anthropic and _TOOL_SEARCH not in env else {}


def _codex(url: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that make Codex use the gateway as a custom provider, with its own key or login."""
    provider = {"name": "lowwater", "base_url": url, "wire_api": "responses"}
    has_key = bool(env.get("OPENAI_API_KEY"))
    auth = 'env_key="OPENAI_API_KEY"' if has_key else "requires_openai_auth=true"
    table = ",".join(
        [*(f"{name}={msgspec.json.encode(value).decode()}" for name, value in provider.items()), auth]
    )
    return ("-c", f"model_providers.lowwater={{{table}}}", "-c", 'model_provider="lowwater"')


def _hermes_base_url(env: Mapping[str, str]) -> str:
    """Return the base URL that Hermes uses for OpenAI-compatible models, from its settings or the environment."""
    path = Path(env.get("HERMES_HOME") or Path(env.get("HOME", "~"), ".hermes").expanduser(), "config.yaml")
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        settings = None
    model = settings.get("model") if isinstance(settings, dict) else None
    configured = model if isinstance(model, dict) else {}
    provider, url = (str(configured.get(name) or "").strip() for name in ("provider", "base_url"))
    match provider or env.get("HERMES_INFERENCE_PROVIDER", "auto"):
        case "custom":
            return env.get("CUSTOM_BASE_URL", "") or url
        case "auto" | "openrouter":
            return url or env.get("OPENROUTER_BASE_URL", "") or OPENROUTER
        case _:
            return ""


def _opencode(url: str, given: str) -> str:
    """Return opencode's settings with the gateway's URL for both providers, keeping the user's own settings."""
    try:
        settings = msgspec.json.decode(given, type=dict[str, object]) if given else {}
    except msgspec.MsgspecError:
        settings = {}
    providers = settings.get("provider")
    merged = dict(providers) if isinstance(providers, dict) else {}
    for name in ("anthropic", "openai"):
        before = merged.get(name)
        own = dict(before) if isinstance(before, dict) else {}
        options = own.get("options")
        own["options"] = {**(options if isinstance(options, dict) else {}), "baseURL": url}
        merged[name] = own
    return msgspec.json.encode({**settings, "provider": merged}).decode()


def shell_command(command: Sequence[str]) -> str:
    """Return a command as one would type it in a shell."""
    return shlex.join(command)
