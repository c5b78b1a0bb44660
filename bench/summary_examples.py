"""The examples in docs/summaries.md: written from generated sessions, and written again by this command."""

import re
import sys
from pathlib import Path

from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest
from tests.generated.generate import generate_session
from tests.generated.session import Kind

PAGE = Path(__file__).parents[1] / "docs" / "summaries.md"
TAIL = 20
_EXAMPLE = re.compile(
    r"(?P<mark><!-- example: (?P<kind>coding|research|support) seed=(?P<seed>\d+) turns=(?P<turns>\d+) "
    r"tokens=(?P<tokens>\d+) -->\n```markdown\n)(?P<text>.*?)(?=\n```\n)",
    re.DOTALL,
)


def example(kind: Kind, *, seed: int, turns: int, tokens: int) -> str:
    """Return the extractive summary of all but the newest messages of a generated session."""
    messages = generate_session(kind, seed=seed, turns=turns).messages[:-TAIL]
    numbers = tuple(range(1, len(messages) + 1))
    request = SummaryRequest(messages=messages, numbers=numbers, max_tokens=tokens, recall=True)
    return extract(request, tokenizer_for("o200k"))


def rewritten(page: str) -> str:
    """Return the page with every example as it is written now."""
    return _EXAMPLE.sub(_again, page)


def _again(match: re.Match[str]) -> str:
    kind: Kind = match["kind"]  # type: ignore[assignment]  # the pattern allows no other
    text = example(kind, seed=int(match["seed"]), turns=int(match["turns"]), tokens=int(match["tokens"]))
    return match["mark"] + text


def main() -> int:
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
