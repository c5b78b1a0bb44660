"""The chat without its user interface: sessions, the model that answers in them, and what the user can do with both."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lowwater.chat.loop import Agent
from lowwater.chat.model_access import SOURCES, ModelAccess
from lowwater.chat.pauses import PauseKeeper
from lowwater.chat.protocol import Upstream, Watcher
from lowwater.chat.tools import Memory, Tool, Toolbox, Workspace, read_file, search, shell, todo, write_file
from lowwater.core.limits import UsageWarning
from lowwater.errors import AnswerFailed, BadInput, PromptTooLong
from lowwater.protocols import Clock, Sink, Store
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import Settings

if TYPE_CHECKING:
    import httpx2

_SOURCE = "chat"
_TITLE_LENGTH = 60
_HYGIENE = "hygiene"
_ROLE = """\
You are a careful assistant at a command line. You work in the user's directory with a few tools: read_file and \
search look at files, shell runs commands, write_file changes files; the user is asked before commands and changes. \
Use todo for work of several steps, and memory for what should outlive this conversation.

Earlier parts of a long conversation may have been compacted: placeholders and summaries carry handles such as lw:412. \
When you need a detail you no longer see, use lowwater_search or lowwater_expand instead of guessing.

Look before you change anything, say briefly what you did, and say so when you do not know."""


class Chat:
    """One user at one terminal: a session at a time, and a model that answers."""

    def __init__(
        self,
        *,
        reach: ModelAccess,
        model: str,
        store: Store,
        settings: Settings,
        directory: Path,
        memory: Memory,
        watcher: Watcher,
        allow: Callable[[str], bool],
        sinks: Sequence[Sink] = (),
        on_warning: Callable[[UsageWarning], object] | None = None,
        context_length: int | None = None,
        withheld: tuple[str, ...] = (),
        name: str | None = None,
        pauses: PauseKeeper | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._reach = reach
        self._pauses = pauses
        self._watcher = watcher
        self._client: httpx2.Client | None = None
        self._directory = directory
        self._memory = memory
        self._context_length = context_length
        self.store = store
        self._first = upstream = reach.upstream(model, self._http, watcher.on_notice)
        library = partial(
            Lowwater,
            clock=clock,
            model=model,
            base_url=upstream.base_url,
            summarizer=() if settings.compression.summary_model else reach.summarizers(model, context_length),
            settings=settings,
            store=store,
            sinks=sinks,
            hooks=(memory,),
            on_warning=on_warning,
        )
        self._library = library()
        # Compacts a session before it is resumed; its warnings would be about another policy's threshold.
        self._hygiene_library = library(policy=_HYGIENE, on_warning=None)
        session = self._opened(name, upstream)
        workspace = Workspace(directory=directory, readable=(SOURCES,) if reach.is_scripted else ())
        toolbox = Toolbox(_tools(workspace, memory, withheld), allow=allow)
        self.agent = Agent(session, upstream, toolbox, system=self._system(session), watcher=watcher)

    @property
    def session(self) -> Session:
        """The current session."""
        return self.agent.session

    @property
    def is_scripted(self) -> bool:
        """Whether the scripted model answers, so that nothing is sent or paid."""
        return self._reach.is_scripted

    def say(self, text: str) -> None:
        """Have the model answer; raise AnswerFailed if it does not.

        A message that does not fit the context even alone is removed again: no later request could be sent with it.
        """
        if not internals(self.session).about.title:
            source = "" if self.session.status().history else _SOURCE
            internals(self.session).describe(title=" ".join(text.split())[:_TITLE_LENGTH], source=source)
        ledger = internals(self.session).ledger
        try:
            self.agent.take_turn(text)
        except PromptTooLong as refused:
            if len(internals(self.session).ledger.messages) != len(ledger.messages) + 1:
                raise
            self.session.rewind(len(ledger.entries), discard_later=True)
            raise AnswerFailed(f"{refused}: your message was removed again; say it in fewer words") from None
        finally:
            self._save()

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context manager that acts in the pause while its block waits for the user."""
        if self._pauses is None:
            return nullcontext()
        return self._pauses.waiting(self.session, self.agent.keep_warm if self.agent.has_sent else None)

    def use(self, model: str) -> None:
        """Use another model from now on; raise BadInput if it is unknown or a key is missing."""
        self.agent.use(self._reach.upstream(model, self._http, self._watcher.on_notice))

    def resume(self, name: str) -> None:
        """Continue a stored session, with the current model."""
        if not any(each.name == name for each in self.store.sessions()):
            raise BadInput(f"there is no session “{name[:60]}”: /sessions lists the stored ones")
        session = self._opened(name, self.agent.upstream)
        self.agent.switch_session(session, system=self._system(session))

    def begin(self) -> None:
        """Begin a new session, with the current model."""
        session = self._opened(None, self.agent.upstream)
        self.agent.switch_session(session, system=self._system(session))

    def close(self) -> None:
        """Save the notes and close connections; the store stays open."""
        self._save()
        if self._client is not None:
            self._client.close()

    def _opened(self, name: str | None, upstream: Upstream) -> Session:
        """Return a session to continue; one that has become too large is compacted first (hygiene)."""
        if name is not None and any(each.name == name for each in self.store.sessions()):
            tidied = self._on(self._hygiene_library.session(name), upstream)
            if tidied.status().history:
                tidied.prepare()
            name = tidied.name
        session = self._on(self._library.session(name), upstream)
        session.refresh(anew=True)
        return session

    def _on(self, session: Session, upstream: Upstream) -> Session:
        """Return a session switched to the current model, with the context length that the user gave for it."""
        if (
            internals(session).route.model != upstream.model
            or internals(session).route.base_url != upstream.base_url
        ):
            session.use(upstream.model, base_url=upstream.base_url)
        if self._context_length is not None and upstream.model == self._first.model:
            session.learn_context_length(self._context_length)
        return session

    def _system(self, session: Session) -> str | None:
        """Return the system prompt for a new session; None for a resumed one, which keeps its own and so its cache."""
        return (
            None
            if internals(session).ledger.view.system
            else instructions(self._directory, self._memory.notes)
        )

    def _save(self) -> None:
        try:
            self._memory.flush()
        except OSError as error:
            self._watcher.on_notice(
                f"the memory could not be written: {error.strerror or type(error).__name__}"
            )

    def _http(self) -> "httpx2.Client":
        import httpx2  # noqa: PLC0415  # not needed by the scripted model

        if self._client is None:
            self._client = httpx2.Client()
        return self._client


def instructions(directory: Path, notes: Sequence[str]) -> str:
    """Return the system prompt of a new session; it never changes within the session, so that it stays cached."""
    paragraphs = [_ROLE, f"Working directory: {directory}"]
    if notes:
        paragraphs.append("What you were asked to remember:\n" + "\n".join(f"- {note}" for note in notes))
    return "\n\n".join(paragraphs)


def _tools(workspace: Workspace, memory: Memory, withheld: tuple[str, ...]) -> tuple[Tool, ...]:
    """Return all tools; `withheld` are environment variables that commands do not get."""
    return (
        shell(workspace, withheld=withheld),
        read_file(workspace),
        write_file(workspace),
        search(workspace),
        todo(),
        memory.tool(),
    )
