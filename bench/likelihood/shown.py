"""What of the next action stands in a view, by strings: beside the likelihood, it says whether a name that is there is also used."""

from collections.abc import Iterator, Sequence
from statistics import mean

from msgspec import Struct

from bench.likelihood.points import Decision
from bench.likelihood.prompts import Chat, prompt_tokens
from bench.likelihood.validity import SHORTEST
from bench.likelihood.views import CEILINGS, lowwater_view, newest
from lowwater.lab.references.uses import find_words


class Shown(Struct, frozen=True, kw_only=True):
    """One view of one point, in numbers."""

    point: str
    view: str
    tokens: int
    full: int
    answers: int
    """Answers of the model that stand in the view themselves."""
    named: int
    """References of the action that the full prompt says, and of these those in the view."""
    kept: int


def shown_in(decision: Decision) -> Iterator[Shown]:
    """Yield Lowwater's views, and the newest messages at as many tokens."""
    said = "\n".join(_texts(decision.messages))
    named = {each.text for each in decision.action.references[1:] if len(each.text) >= SHORTEST}
    wanted = [text for text in named if find_words(text, said) >= 0]
    for share in CEILINGS:
        ours = lowwater_view(decision.messages, round(share * decision.point.tokens))
        views = {"lowwater": ours, "newest": newest(decision.messages, len(prompt_tokens(ours)))}
        for name, view in views.items():
            text = "\n".join(_texts(view))
            if view:
                yield Shown(
                    point=decision.point.name,
                    view=f"{name}-{share:.0%}",
                    tokens=len(prompt_tokens(view)),
                    full=decision.point.tokens,
                    answers=sum(each["role"] == "assistant" for each in view),
                    named=len(wanted),
                    kept=sum(find_words(each, text) >= 0 for each in wanted),
                )


def shown_table(rows: Sequence[Shown]) -> Iterator[str]:
    """Yield for each view what stands in it, on the points that all views have."""
    views = list(dict.fromkeys(row.view for row in rows))
    having = [{row.point for row in rows if row.view == view} for view in views]
    points = set.intersection(*having) if having else set()
    yield f"| view, {len(points)} points | share of the tokens | answers of the model in it | references of the action in it |"
    yield "|---|---|---|---|"
    for view in views:
        part = [row for row in rows if row.view == view and row.point in points]
        yield (
            f"| {view} | {sum(row.tokens for row in part) / sum(row.full for row in part):.0%} | "
            f"{mean(row.answers for row in part):.1f} | "
            f"{sum(row.kept for row in part) / max(1, sum(row.named for row in part)):.0%} |"
        )


def _texts(messages: Sequence[Chat]) -> Iterator[str]:
    for message in messages:
        content = message.get("content") or ""
        yield content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        yield from (call["function"]["arguments"] for call in message.get("tool_calls") or ())
