"""Options that several commands on kept sessions have."""

import os
from typing import Annotated

import typer

from lowwater.adapters.settings import load_settings
from lowwater.cli.failing import say
from lowwater.session.plugins import policy_names

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Redact = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact",
        help="Conceal secrets (keys, tokens); default: the setting privacy.redact.",
        show_default=False,
    ),
]


def redacts(flag: bool | None) -> bool:
    """Tell whether secrets are to be concealed: what was said, or else what the settings say."""
    if flag is not None:
        return flag
    resolved = load_settings(config=None, env=os.environ, flags={}, policies=policy_names)
    for warning in resolved.warnings:
        say(f"warning: {warning}")
    return resolved.settings.privacy.redact
