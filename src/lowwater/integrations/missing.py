"""What a user is told whose framework is not installed."""

from lowwater.errors import BadSetting


def missing(framework: str, extra: str) -> BadSetting:
    """Return the error that names the extra to install."""
    return BadSetting(f"{framework} is not installed: pip install 'lowwater[{extra}]'")
