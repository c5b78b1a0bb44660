"""Records the golden output anew and says what changed: `python -m tests.golden.record [NAME…]`.

Without names everything is recorded, what is read from the shared folder only where there is one.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.conversations import TRANSCRIPTS
from tests.golden.difference import first_difference
from tests.golden.expected import IN_REPOSITORY, IN_SHARED_FOLDER, expected, write_expected


def main(names: list[str]) -> None:
    """Record what is named, or everything."""
    os.environ["LOWWATER_STORE"] = "memory:"
    there_are = {**IN_REPOSITORY, **(IN_SHARED_FOLDER if TRANSCRIPTS.is_dir() else {})}
    for name in names or there_are:
        with TemporaryDirectory() as folder:
            now = there_are[name](Path(folder))
        before = expected(name)
        difference = first_difference(before, now)
        if difference:
            write_expected(name, now)
        said = "new" if before is None else f"changed: {difference}" if difference else "unchanged"
        sys.stdout.write(f"{name}: {said}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
