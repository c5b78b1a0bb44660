"""The fixed querier: the words by which a use that left the view is asked for, all of them visible at that moment.

They are the words that the answer says before the reference, the nearest first, then those of the answer before and of the
newest user message: of each only what stands in the view. So neither the reference nor anything else that is gone can
be among them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from lowwater.core.messages import Message, texts_of
from lowwater.core.summary.activity import own_words
from lowwater.replay.references.finding import find
from lowwater.replay.references.uses import Use, said_in

MOST_WORDS = 24
_SHORTEST = 3
_WORD = re.compile(r"[\w./-]*\w")


class Sight:
    """The words that stand in the messages that are sent."""

    def __init__(self, shown: Iterable[Message]) -> None:
        self._words = {
            word.lower() for message in shown for text in texts_of(message) for word in _WORD.findall(text)
        }

    def __contains__(self, word: str) -> bool:
        return word.lower() in self._words


def words_for(use: Use, messages: Sequence[Message], sight: Sight) -> str:
    """Return the words by which to ask for a use; nothing if none at hand are in sight."""
    words = (word for text in _at_hand(use, messages) for word in _nearest_first(text) if word in sight)
    return " ".join(islice(dict.fromkeys(words), MOST_WORDS))


def _at_hand(use: Use, messages: Sequence[Message]) -> Iterator[str]:
    """Yield what was said before a reference: in its own answer, in the one before, by the user."""
    answer = _said(messages[use.number - 1])
    yield answer[: max(0, find(use.text, answer))]
    earlier = range(use.number - 2, -1, -1)
    yield next((_said(messages[at]) for at in earlier if messages[at].role == "assistant"), "")
    yield next(
        (text for at in earlier if messages[at].role == "user" and (text := own_words(messages[at]))), ""
    )


def _said(message: Message) -> str:
    return "\n".join(chain((message.text,), *(said_in(call) for call in message.calls)))


def _nearest_first(text: str) -> Iterator[str]:
    return (word for word in reversed(_WORD.findall(text)) if len(word) >= _SHORTEST)
