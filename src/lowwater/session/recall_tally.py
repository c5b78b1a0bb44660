"""Counts how a model uses the recall tools of a session, for the record of the next answer."""

from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.events import RecallUse
from lowwater.core.messages import Message, texts_of
from lowwater.core.tools import SEARCH, is_recall
from lowwater.core.view import View


class RecallAnswer(Struct, frozen=True, kw_only=True):
    """A call of a recall tool that gave the model something."""

    asked: str
    """The arguments of the call."""
    given: str
    view: View
    """What the model was shown when it asked."""


class RecallTally:
    """What the model asked for since the last answer that was recorded; any thread may use it."""

    def __init__(self) -> None:
        self._use = RecallUse()
        self._answers: tuple[RecallAnswer, ...] = ()
        """Of calls that were not followed by anything but recall yet."""
        self._lock = Lock()

    def add(self, name: str, answer: RecallAnswer | None) -> None:
        """Count a call of a recall tool; `answer` is None if nothing was found."""
        with self._lock:
            use = self._use
            if name == SEARCH:
                use = replace(use, searches=use.searches + 1)
            else:
                use = replace(use, expands=use.expands + 1)
            if answer is not None:
                use = replace(use, found=use.found + 1)
                self._answers = (*self._answers, answer)
            self._use = use

    def before(self, answer: Message, *, offered: bool) -> RecallUse | None:
        """Return what led to an answer; None if recall was neither offered nor used."""
        with self._lock:
            use, answers = self._use, self._answers
        if not offered and not use.calls and not answers:
            return None
        named = 0 if _only_recalls(answer) else sum(uses_names_of(each, answer) for each in answers)
        return replace(use, named=named)

    def clear(self, answer: Message) -> None:
        """Begin to count anew, now that an answer is recorded."""
        with self._lock:
            self._use = RecallUse()
            if not _only_recalls(answer):
                self._answers = ()


def uses_names_of(recalled: RecallAnswer, answer: Message) -> bool:
    """Return whether an answer names something that it can only have from this call."""
    from lowwater.core.references import NAME  # noqa: PLC0415 - loaded when recall is used

    used = {name for text in texts_of(answer) for name in NAME.findall(text)}
    used &= set(NAME.findall(recalled.given))
    new = {name for name in used if name not in recalled.asked}
    if not new:
        return False
    shown = [recalled.view.system.decode(errors="replace")]
    shown += [text for message in recalled.view.messages for text in texts_of(message)]
    return any(not any(name in text for text in shown) for name in new)


def _only_recalls(answer: Message) -> bool:
    """Return whether the model does nothing but go on recalling."""
    return bool(answer.calls) and all(is_recall(call.name) for call in answer.calls)
