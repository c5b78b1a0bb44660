"""`minutes`: a summary that needs no model, in the order in which things happened."""

from collections.abc import Iterator

from lowwater import SummaryFailed, SummaryRequest, Written
from lowwater.plugins import Message, Text, ToolResult

_LINE = 200
_CHARS_PER_TOKEN = 3


class Minutes:
    """Writes down who said what and which tools were called; an older summary stays above that."""

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the minutes, the newest of them if all do not fit, or raise SummaryFailed if there is nothing to write."""
        room = _CHARS_PER_TOKEN * request.max_tokens
        lines = [line for message in request.messages for line in _lines(message)]
        if not lines:
            raise SummaryFailed("the messages say nothing that minutes could hold", "refused")
        kept: list[str] = []
        for line in reversed(lines):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        before = f"{request.previous.strip()}\n\n" if request.previous else ""
        return Written(text=f"{before}## Minutes\n" + "\n".join(reversed(kept)), by="minutes")


def _lines(message: Message) -> Iterator[str]:
    if message.text.strip():
        whole = message.role == "user"
        yield f"- {message.role}: {_flat(message.text, 5 * _LINE if whole else _LINE)}"
    for call in message.calls:
        yield f"- called {call.name}: {_flat(call.arguments, _LINE)}"
    for result in message.results:
        yield f"  {'failed' if result.is_error else 'got'}: {_flat(_said(result), _LINE)}"


def _said(result: ToolResult) -> str:
    return " ".join(part.text for part in result.parts if isinstance(part, Text))


def _flat(text: str, width: int) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= width else one_line[: width - 1] + "…"
