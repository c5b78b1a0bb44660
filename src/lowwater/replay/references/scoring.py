"""What a session that is played again still has of what its answers use, call by call."""

from collections.abc import Sequence

from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, texts_of
from lowwater.core.recall.search import Search
from lowwater.core.view import Original, View
from lowwater.protocols import Tokenizer
from lowwater.replay.references.asking import Sight, words_for
from lowwater.replay.references.finding import find
from lowwater.replay.references.outcome import Outcome
from lowwater.replay.references.reaching import Reach
from lowwater.replay.references.uses import Use


class Scorer:
    """Looks for a session's uses in the views it is played with; give it the ledger before each call.

    `messages` are all of the session, numbered as in the ledger. The uses of an answer are looked for once, before the call
    it came from; messages of the assistant that follow each other are one answer.
    """

    def __init__(self, uses: Sequence[Use], messages: Sequence[Message], *, tokenizer: Tokenizer) -> None:
        self._messages = messages
        self._tokenizer = tokenizer
        self._left = sorted(uses, key=lambda use: use.number, reverse=True)

    def at(self, ledger: Ledger, search: Search | None = None) -> list[Outcome]:
        """Return where each use of the answer that comes next is; the ledger's view is what is sent for it.

        `search` is that of the session's store as it is now; without it all messages are read.
        """
        due = self._due(len(ledger.messages) + 1)
        visible = _visible(due, ledger.view)
        if len(visible) == len(due):
            return [Outcome(use=use, because="shown") for use in due]
        sight = Sight(ledger.view.messages)
        reach = Reach(ledger, search, self._tokenizer)
        return [
            Outcome(use=use, because="shown")
            if use.text in visible
            else reach.get_back(use, words_for(use, self._messages, sight))
            for use in due
        ]

    def _due(self, number: int) -> list[Use]:
        """Take the uses of the answer that begins with message `number`; what came before had no call of its own."""
        last = number
        while last < len(self._messages) and self._messages[last].role == "assistant":
            last += 1
        due: list[Use] = []
        while self._left and self._left[-1].number <= last:
            use = self._left.pop()
            if use.number >= number:
                due.append(use)
        return due


def _visible(uses: Sequence[Use], view: View) -> set[str]:
    """Return the texts of the uses that stand in a view."""
    if not uses:
        return set()
    # No message but its origin has the text, so that beside that only what compactions wrote is to be read.
    originals = {item.number for item in view.items if isinstance(item, Original)}
    written = [
        text for item in view.items if not isinstance(item, Original) for text in texts_of(item.message)
    ]
    return {
        use.text
        for use in uses
        if use.origin.number in originals or any(find(use.text, text) >= 0 for text in written)
    }
