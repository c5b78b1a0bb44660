"""What a session reports of its past, and how it goes back there."""

from typing import Any

from msgspec.structs import replace

from lowwater.core.accounts.difference import Difference, difference
from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend
from lowwater.core.recall.expand import expand
from lowwater.core.recall.recalled import Expansion, Recalled
from lowwater.core.recall.search import Room, recall, room_in
from lowwater.core.stored import About, Hit
from lowwater.core.turns import rewind as rewinding
from lowwater.core.turns.rewind import Checkpoint, position_of
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import View, join_neighbours, neighbours_to_join
from lowwater.session.dependencies import Dependencies
from lowwater.session.recall_tools import RecallTools
from lowwater.session.repository import Change, SharedState, new_name, setup_for
from lowwater.session.turn_input import require_count, require_place, require_text, written_messages


class SessionHistory:
    """The readings of a session's ledger, and the entries that change the view without compacting it."""

    def __init__(self, kept: SharedState, setup: Setup, outside: Dependencies) -> None:
        self._kept = kept
        self._given = setup
        self._outside = outside
        # One for all calls: several answers to one message of the model share what is left of the window.
        self._recall_tools = RecallTools(
            lambda: self.ledger, tokenizer=self._setup.tokenizer, room=self._room, search=self._search
        )

    @property
    def _setup(self) -> Setup:
        """How the session is run: counted in the vocabulary that its ledger was opened with."""
        return setup_for(self._kept.state, self._given)

    @property
    def name(self) -> str:
        """What the session is called in its store; another one after a split."""
        return self._kept.home.name

    @property
    def about(self) -> About:
        """Title, source and lineage."""
        return self._kept.home.about

    @property
    def ledger(self) -> Ledger:
        """Everything that happened, as a value that stays as it is while the session goes on."""
        return self._kept.state.ledger

    def view(self, *, apart: bool = False) -> list[Any]:
        """Return what the model is shown now, as messages in the conversation's format.

        A summary beside a user's message is a part of it, as in a request; `apart` gives each a message of its own.
        """
        state = self._kept.state
        view = state.ledger.view
        messages = mend(view.messages)
        joined = messages if apart else join_neighbours(messages, neighbours_to_join(messages, view.items))
        return written_messages(joined, state)

    def history(self) -> list[Any]:
        """Return every message ever appended, in order, as it came."""
        return self._kept.read(lambda state: written_messages(state.ledger.history(), state))

    def refresh(self, *, anew: bool = False) -> None:
        """Learn what other processes did to the session; if it was deleted, begin it `anew` or raise DeletedSession."""
        self._kept.refresh(anew=anew)

    def describe(self, *, title: str = "", source: str = "") -> None:
        """Give the session a title or a source; what is empty stays as it was."""

        def described(state: State) -> Change:
            about = self._kept.home.about
            told = replace(about, title=title or about.title, source=source or about.source)
            return Change(state=state, about=told)

        if title or source:
            self._kept.take(described)

    def split(self) -> str:
        """End the session under its name and go on with all of it in a child, whose name is returned.

        The child has this session for its parent and the next numbered title of the lineage.
        """
        child = new_name(self._at())
        self._kept.split(child, self._at())
        return child

    def checkpoints(self) -> list[Checkpoint]:
        """Return where the session can go back to, oldest first: before each compaction, and by name."""
        return self._kept.read(lambda state: rewinding.checkpoints(state.ledger))

    def checkpoint(self, name: str) -> None:
        """Give the present position a name."""
        require_text(name, "a checkpoint's name")
        self._kept.change(lambda state: rewinding.mark(state, name, self._at()))

    def rewind(self, to: str | int, *, discard_later: bool = False) -> None:
        """Undo compactions back to a checkpoint and keep the messages that came later; or go back in time.

        A rewind is an entry like any other: it has a checkpoint before it and can itself be rewound.
        """
        require_place(to, "`to`")
        self._kept.change(
            lambda state: rewinding.rewind(state, to, self._setup, discard_later=discard_later, at=self._at())
        )

    def diff(self, before: str | int, *, after: str | int | None = None) -> Difference:
        """Return how the view at one checkpoint differs from that at another, or from the view now."""
        require_place(before, "`before`")
        return self._kept.read(
            lambda state: difference(_view_at(state.ledger, before), _view_at(state.ledger, after))
        )

    def recall(self, wanted: str, *, limit: int = 5, near: int = 1) -> list[Recalled]:
        """Return originals: those that a handle such as `lw:412` or `lw:12-40` names, or the ones that match the words best.

        Each comes with its group and `near` messages before and after it.
        """
        if wanted != "":
            require_text(wanted, "what to recall")
        require_count(limit, "limit", least=0)
        require_count(near, "near", least=0)
        return self._kept.read(
            lambda state: recall(state.ledger, wanted, search=self._search, limit=limit, near=near)
        )

    def expand(self, handle: str) -> Expansion:
        """Return what a summary or a range of messages was made of, one level down; `lw:12-408` names it."""
        require_text(handle, "a handle")
        return self._kept.read(lambda state: expand(state.ledger, handle))

    def recall_tools(self) -> RecallTools:
        """Return the tools by which the model itself can search and expand: put them into the request, and hand its calls to them."""
        return self._recall_tools

    def _room(self) -> Room:
        windows = self._outside.windows
        return room_in(windows.applied(self._kept.state), windows.applied_to(self._setup, self._kept.state))

    def _search(self, words: str, limit: int) -> list[Hit]:
        return self._outside.store.search(words, session=self.name, limit=limit)

    def _at(self) -> float:
        return self._outside.clock.now()


def _view_at(ledger: Ledger, place: str | int | None) -> View:
    if place is None:
        return ledger.view
    require_place(place, "`after`")
    return ledger.view_at(place if isinstance(place, int) else position_of(ledger, place))
