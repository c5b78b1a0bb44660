"""The rules-checking provider: a real server that refuses what the real APIs refuse and answers by script."""

from collections.abc import Callable, Mapping
from time import monotonic
from types import TracebackType
from typing import Self

from lowwater.testing.provider.answers import OK, Answer
from lowwater.testing.provider.app import Application, Settings
from lowwater.testing.provider.caches import Machines
from lowwater.testing.provider.prompt import Count, quarter
from lowwater.testing.provider.records import Records, Seen
from lowwater.testing.provider.rule import Refusal
from lowwater.testing.provider.script import Script, Scripted
from lowwater.testing.provider.server import Server


class Provider:
    """Serves `/v1/messages`, `/v1/chat/completions`, `/v1/responses` and what belongs to them inside a `with` block.

    `script` is a sequence of answers, followed by `default` for ever, or a function from the request to its answer.
    `key` signs thinking: providers with one key accept each other's. How prompts are cached follows from the model's
    name, or is the one `caching` names (see `lowwater.testing.provider.caches`); prefixes age by `now`, in seconds.
    """

    def __init__(
        self,
        script: Scripted = (),
        *,
        default: Answer = OK,
        count: Count = quarter,
        context_lengths: Mapping[str, int] | None = None,
        default_context: int = 200_000,
        key: bytes = b"lowwater",
        caching: str | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        settings = Settings(
            count=count, context_lengths=context_lengths or {}, default_context=default_context, key=key
        )
        self._records = Records()
        self._machines = Machines(now=now, caching=caching)
        self._app = Application(
            settings=settings,
            script=Script(script, default),
            records=self._records,
            machines=self._machines,
        )
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self._server = Server(self._app.asgi, self._app.renew())
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.stop()

    @property
    def anthropic_base_url(self) -> str:
        """What the `anthropic` SDK takes as `base_url`."""
        if self._server is None:
            raise RuntimeError("the provider is not running: use it in a `with` block")
        return self._server.url

    @property
    def openai_base_url(self) -> str:
        """What the `openai` SDK takes as `base_url`."""
        return f"{self.anthropic_base_url}/v1"

    @property
    def requests(self) -> tuple[Seen, ...]:
        """Every request seen so far, refused ones and unknown paths included, in the order they were decided."""
        return self._records.all()

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The rules broken so far, in order."""
        return tuple(seen.refusal for seen in self.requests if seen.refusal is not None)

    def evict(self) -> None:
        """Forget every cached prefix."""
        self._machines.evict()

    def stray(self, calls: int = 1) -> None:
        """Let each of the next calls find an empty cache of its own; those behind them find the old one as it was."""
        self._machines.stray(calls)
