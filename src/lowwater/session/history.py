"""The past of a session: reading its ledger, recalling originals, checkpoints and rewinds, splits."""

from threading import Lock
from typing import TYPE_CHECKING, Any

from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend
from lowwater.core.stored import About, Hit
from lowwater.core.turns import rewind as rewinding
from lowwater.core.turns.rewind import Checkpoint, position_of
from lowwater.core.view import View, join_neighbours, neighbours_to_join
from lowwater.session.internals import SessionInternals
from lowwater.session.turn_input import require_count, require_place, require_text, written_messages

if TYPE_CHECKING:
    from lowwater.core.accounts.difference import Difference
    from lowwater.core.recall.recalled import Expansion, Recalled
    from lowwater.core.recall.search import RecallRoom
    from lowwater.session.recall_tools import RecallTools


class SessionHistory:
    """The part of `Session` that reads the ledger and changes the view without compacting it."""

    def __init__(self, internals: SessionInternals) -> None:
        self._shared = internals.shared
        self._dependencies = internals.dependencies
        self._recall_tally = internals.recall_tally
        # One object for all calls: answers to several calls in one message share the room that is left.
        self._recall_tools: RecallTools | None = None
        self._making_tools = Lock()

    @property
    def name(self) -> str:
        """The session's name in its store; it changes when the session is split."""
        return self._shared.repository.name

    @property
    def about(self) -> About:
        """Title, source and lineage."""
        return self._shared.repository.about

    def view(self, *, apart: bool = False) -> list[Any]:
        """Return what the model is shown now, as messages in the conversation's format.

        A summary next to a user message is merged into it, as in a request; with `apart` each is a message of its own.
        """
        state = self._shared.state
        view = state.ledger.view
        messages = mend(view.messages)
        joined = messages if apart else join_neighbours(messages, neighbours_to_join(messages, view.items))
        return written_messages(joined, state)

    def history(self) -> list[Any]:
        """Return every message ever appended, in order, as it came."""
        return self._shared.read(lambda state: written_messages(state.ledger.history(), state))

    def refresh(self, *, anew: bool = False) -> None:
        """Read what other processes did to the session.

        If it was deleted, it starts over empty with `anew`; otherwise DeletedSession is raised.
        """
        self._shared.refresh(anew=anew)

    def checkpoints(self) -> list[Checkpoint]:
        """Return the positions the session can go back to, oldest first: before each compaction, and named ones."""
        return self._shared.read(lambda state: rewinding.checkpoints(state.ledger))

    def checkpoint(self, name: str) -> None:
        """Name the current position, to come back to it with `rewind`."""
        require_text(name, "a checkpoint's name")
        self._shared.change(lambda state: rewinding.mark(state, name, self._at()))

    def rewind(self, to: str | int, *, discard_later: bool = False) -> None:
        """Undo the compactions since a checkpoint and keep the messages that came later, unless `discard_later` drops them too.

        A rewind is an entry in the ledger like any other: it can itself be undone.
        """
        require_place(to, "`to`")
        self._shared.change(
            lambda state: rewinding.rewind(
                state, to, self._shared.setup, discard_later=discard_later, at=self._at()
            )
        )

    def diff(self, before: str | int, *, after: str | int | None = None) -> "Difference":
        """Return how the view at checkpoint `before` differs from the view at `after`, or from the current view."""
        from lowwater.core.accounts.difference import difference  # noqa: PLC0415 - loaded when it is asked for

        require_place(before, "`before`")
        return self._shared.read(
            lambda state: difference(_view_at(state.ledger, before), _view_at(state.ledger, after))
        )

    def recall(self, wanted: str, *, limit: int = 5, near: int = 1) -> "list[Recalled]":
        """Return original messages: those that a handle such as `lw:412` or `lw:12-40` names, or the best matches for words.

        Each comes with its group and `near` messages before and after it.
        """
        from lowwater.core.recall.search import recall  # noqa: PLC0415 - loaded when it is asked for

        if wanted != "":
            require_text(wanted, "what to recall")
        require_count(limit, "limit", least=0)
        require_count(near, "near", least=0)
        return self._shared.read(
            lambda state: recall(state.ledger, wanted, search=self._search, limit=limit, near=near)
        )

    def expand(self, handle: str) -> "Expansion":
        """Return what a summary or a range of messages, named by a handle such as `lw:12-408`, was made of: one level down."""
        from lowwater.core.recall.expand import expand  # noqa: PLC0415 - loaded when it is asked for

        require_text(handle, "a handle")
        return self._shared.read(lambda state: expand(state.ledger, handle))

    def recall_tools(self) -> "RecallTools":
        """Return the tools with which the model itself can search and expand: add them to the request, and let them answer its calls."""
        from lowwater.session.recall_tools import RecallTools  # noqa: PLC0415 - loaded when it is asked for

        if self._recall_tools is None:
            made = RecallTools(
                lambda: self._shared.state.ledger,
                tokenizer=self._shared.setup.tokenizer,
                room=self._room,
                search=self._search,
                tally=self._recall_tally,
            )
            with self._making_tools:
                self._recall_tools = self._recall_tools or made
        return self._recall_tools

    def _room(self) -> "RecallRoom":
        from lowwater.core.recall.search import room_in  # noqa: PLC0415 - loaded when it is asked for

        windows = self._dependencies.windows
        return room_in(
            windows.applied(self._shared.state), windows.applied_to(self._shared.setup, self._shared.state)
        )

    def _search(self, words: str, limit: int) -> list[Hit]:
        return self._dependencies.store.search(words, session=self.name, limit=limit)

    def _at(self) -> float:
        return self._dependencies.clock.now()


def _view_at(ledger: Ledger, place: str | int | None) -> View:
    if place is None:
        return ledger.view
    require_place(place, "`after`")
    return ledger.view_at(place if isinstance(place, int) else position_of(ledger, place))
