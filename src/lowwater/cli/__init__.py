"""The command line."""

from lowwater.cli.app import main

__all__ = ["main"]
