"""The command line."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command `lowwater` and leave with its exit code."""
    if sys.argv[1:] == ["--version"]:
        # Asked by scripts, often: nothing but the version is loaded for it.
        import lowwater  # noqa: PLC0415

        sys.stdout.write(f"lowwater {lowwater.__version__}\n")
        sys.exit(0)
    from lowwater.cli.app import main as run  # noqa: PLC0415 - it takes a while, see above

    run()
