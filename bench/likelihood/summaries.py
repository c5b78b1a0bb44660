"""Summaries that a real model writes, in Lowwater's views: asked as the engine asks, and with the prompts of peers' packages.

The scoring model writes them too, on a borrowed machine, so that this takes two passes. The first makes every view with the stand-in and notes
what a model would have been asked; `write.py` lets the model answer; the second makes the views again with these answers. In each pass the
engine's requests go over HTTP through its own summarizer, to a server on loopback; a peer's package is given the same messages to condense,
and what it asks of its model is asked of ours. Everything around the text is the same: our validation, our index, our pins.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean
from threading import Thread
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.judged_summaries import TOKENIZER, outcome
from bench.likelihood.build import case_of
from bench.likelihood.inputs import ENDS, FULL, Case, digest_of, opened
from bench.likelihood.peers import LIMIT
from bench.likelihood.points import Decision, Point
from bench.likelihood.probes import probe_case, probes_of
from bench.likelihood.prompts import Chat, decode, prompt_tokens
from bench.likelihood.views import ABLATED_AT, MODEL, WINDOW, lowwater_view, summary_size
from bench.peers.catalogue import LANGCHAIN, STRANDS, Package
from bench.peers.environment import python_with
from bench.peers.stand_in import summary_of
from bench.peers.worker import Worker
from lowwater.core.formats.codec import encode_messages
from lowwater.core.messages import texts_of
from lowwater.core.summary.request import CachedPrefix, SummaryRequest, Written
from lowwater.core.summary.validation import validate
from lowwater.errors import SummaryFailed
from lowwater.protocols import Summarizer
from lowwater.summarizers.model import ModelSummarizer

SHORTEST, LONGEST = 6_000, 24_000
"""Tokens of the full prompts; in shorter ones there is little to condense, longer ones leave the model no room to write behind them."""
HEADROOM = 2
"""The limit of an answer is so many times the length asked for, as in the engine's own requests."""
MOST_WRITTEN = 1_500
"""Tokens of an answer, also where more was allowed."""
POINTS = 80
LABEL = f"{ABLATED_AT:.0%}"


class Prompted(Struct, frozen=True, kw_only=True):
    """A peer's package whose prompt for summaries is tried."""

    name: str
    package: Package
    variant: str


PROMPTED = (
    Prompted(name="langchain", package=LANGCHAIN, variant="untrimmed"),
    Prompted(name="strands", package=STRANDS, variant="summarizing"),
)
_KEPT: tuple[dict[str, Any], ...] = (
    {"role": "assistant", "content": "I have this now."},
    {"role": "user", "content": "Go on."},
)
"""The newest messages, which the packages keep and do not condense."""
WRITERS = ("cached", "plain", *(each.name for each in PROMPTED))
"""Our request that extends the conversation, our request with a transcript, and the peers' prompts."""


class Judged(Struct, frozen=True, kw_only=True):
    """What became of a summary, in numbers."""

    point: str
    writer: str
    outcome: str
    score: float
    coverage: float
    tokens: int
    replaced: int
    """Tokens of the messages it is about."""
    invented: int
    cut_off: bool


class Texts:
    """What the model wrote for each prompt; of prompts that it has not seen, a list."""

    def __init__(self, path: Path | None = None) -> None:
        self._known: dict[str, list[int]] = {}
        if path is not None:
            with opened(path) as file:
                self._known = {row["id"]: row["tokens"] for row in map(json.loads, file)}
        self.asked: dict[str, dict[str, Any]] = {}
        """Prompts without an answer, as `write.py` reads them."""

    def answer(self, messages: Sequence[Chat], most: int) -> tuple[str, bool]:
        """Return what the model wrote and whether it was cut off; the stand-in's text where it has not been asked."""
        tokens = prompt_tokens(messages, for_call=False)
        name = digest_of(tokens)
        written = self._known.get(name)
        if written is None:
            limit = min(most, MOST_WRITTEN, WINDOW - len(tokens))
            if limit > 0:
                self.asked[name] = {"id": name, "tokens": tokens, "most": limit}
            said = "\n".join(str(each.get("content") or "") for each in messages)
            return summary_of(said, summary_size(limit)), False
        return decode(written), written[-1:] != [] and written[-1] not in ENDS


class Served:
    """The model behind OpenAI's chat API on loopback, inside a `with` block."""

    def __init__(self, texts: Texts) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                most = body.get("max_completion_tokens") or body.get("max_tokens") or MOST_WRITTEN
                text, cut_off = texts.answer(body["messages"], most)
                answer = json.dumps(_completion(body["model"], text, cut_off=cut_off)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> str:
        """Return its URL."""
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class PeerPrompt:
    """Asks the model what a peer's package would ask it of the same messages."""

    model = MODEL

    def __init__(self, each: Prompted, worker: Worker, texts: Texts) -> None:
        self.name = each.name
        self.opening: Chat = {}
        """What the user said first: the packages expect a conversation to begin with it."""
        self._worker, self._texts = worker, texts

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return what the model answers."""
        messages = [msgspec.json.decode(raw) for raw in encode_messages(request.messages, "openai_chat")]
        if messages[0]["role"] != "user":
            messages.insert(0, dict(self.opening))
        self._worker.begin(trigger=1, keep=1, summary=summary_size(request.max_tokens))
        asked = self._worker.request([*messages, *_KEPT], None).asked
        if not asked:
            raise SummaryFailed(f"{self.name} asks for no summary of this", "refused")
        question: Chat = {"role": "user", "content": asked[-1]}
        text, cut_off = self._texts.answer([question], HEADROOM * request.max_tokens)
        return Written(text=text, by=self.name, cut_off=cut_off, model=MODEL)


class Asking:
    """Passes requests on, as extensions of the conversation if there is one, and notes how the answers are judged."""

    model = MODEL

    def __init__(self, inner: Summarizer, *, prefix: bytes = b"") -> None:
        self._inner, self._prefix = inner, prefix
        self.name = getattr(inner, "name", "model")
        self.answers: list[tuple[SummaryRequest, Written]] = []

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return what the summarizer wrote."""
        prefix = CachedPrefix(format="openai_chat", body=self._prefix) if self._prefix else None
        written = self._inner.summarize(replace(request, cached_prefix=prefix))
        self.answers.append((request, written))
        return written


class SummaryViews:
    """Makes the views of a point with each writer's summary; inside a `with` block.

    Views that would need an answer that the model has not given are left out, unless this only finds out what to ask.
    """

    def __init__(self, texts: Texts, *, only_asks: bool = False) -> None:
        self.texts = texts
        self._only_asks = only_asks
        self.judged: list[Judged] = []
        self._stack = ExitStack()
        self._peers: list[PeerPrompt] = []

    def __enter__(self) -> "SummaryViews":
        url = self._stack.enter_context(Served(self.texts))
        self._model = ModelSummarizer(
            model=MODEL, base_url=url, api_key="none", format="openai_chat", context_length=WINDOW
        )
        for each in PROMPTED:
            python = python_with(each.package.environment, *each.package.requirements)
            worker = Worker(
                python,
                each.package.worker,
                variant=each.variant,
                packages=each.package.packages,
                tools=(),
                limit=LIMIT,
            )
            self._peers.append(PeerPrompt(each, self._stack.enter_context(worker), self.texts))
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401
        self._stack.__exit__(*error)

    def views(self, decision: Decision) -> Iterator[tuple[str, Sequence[Chat]]]:
        """Yield the view with each writer's summary; nothing if the engine asks for none."""
        ceiling = round(ABLATED_AT * decision.point.tokens)
        for name, asking in self._writers(decision):
            unanswered = len(self.texts.asked)
            view = lowwater_view(decision.messages, ceiling, summarizer=_always(asking))
            if asking.answers and (self._only_asks or len(self.texts.asked) == unanswered):
                yield f"{name}-{LABEL}", view
                for request, written in asking.answers:
                    self.judged.append(_judged(decision.point.name, name, request, written))

    def _writers(self, decision: Decision) -> Iterator[tuple[str, Asking]]:
        sent = msgspec.json.encode({"model": MODEL, "messages": decision.messages})
        yield "cached", Asking(self._model, prefix=sent)
        yield "plain", Asking(self._model)
        said_first = next(each for each in decision.messages if each["role"] == "user")
        for peer in self._peers:
            peer.opening = {"role": "user", "content": said_first["content"]}
            yield peer.name, Asking(peer)


def fitting(points: Iterable[Point]) -> list[Point]:
    """Return the points whose sizes allow a summary."""
    return [each for each in points if SHORTEST <= each.tokens <= LONGEST]


def with_summaries(
    decisions: Iterable[Decision], views: SummaryViews
) -> Iterator[tuple[Decision, dict[str, Sequence[Chat]]]]:
    """Yield the first points at which the engine asks for a summary, with the views."""
    found = 0
    for decision in decisions:
        made = dict(views.views(decision))
        if made:
            found += 1
            yield decision, made
        if found == POINTS:
            return


def cases_with(decision: Decision, made: Mapping[str, Sequence[Chat]]) -> Iterator[Case]:
    """Yield the case of a point with these views, and those of the questions about its session."""
    yield case_of(decision, made)
    for probe in probes_of(decision.messages):
        asked: Chat = {"role": "user", "content": probe.question}
        every = {FULL: decision.messages, **made}
        yield probe_case(decision, probe, {name: [*view, asked] for name, view in every.items()})


def extracted_and_stand_in(decision: Decision) -> Iterator[tuple[str, Sequence[Chat]]]:
    """Yield the views with an extracted summary and with the stand-in's."""
    ceiling = round(ABLATED_AT * decision.point.tokens)
    yield f"extractive-{LABEL}", lowwater_view(decision.messages, ceiling, summarizer=lambda _: None)
    yield f"stand-in-{LABEL}", lowwater_view(decision.messages, ceiling)


def judged_table(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield what became of each writer's summaries."""
    yield "| asked by | summaries | accepted as written | repaired | refused | most often because | score | critical references kept | tokens | names invented | cut off |"
    yield "|---" * 11 + "|"
    by_writer: dict[str, list[Judged]] = defaultdict(list)
    for each in judged:
        by_writer[each.writer].append(each)
    for writer in sorted(by_writer, key=WRITERS.index):
        rows = by_writer[writer]
        kinds = Counter(each.outcome.partition(" ")[0] for each in rows)
        why = Counter(
            each.outcome.partition("(")[2].rstrip(")") for each in rows if "refused" in each.outcome
        )
        most = ", ".join(f"{code} {count}" for code, count in why.most_common(2)) or "–"
        yield (
            f"| {_SAID.get(writer, f'the prompt of {writer}')} | {len(rows)} | {kinds['accepted'] / len(rows):.0%} | "
            f"{kinds['repaired'] / len(rows):.0%} | {kinds['refused'] / len(rows):.0%} | {most} | "
            f"{mean(each.score for each in rows):.2f} | {mean(each.coverage for each in rows):.0%} | "
            f"{mean(each.tokens for each in rows):,.0f} | {mean(each.invented for each in rows):.1f} | "
            f"{sum(each.cut_off for each in rows) / len(rows):.0%} |"
        )


_SAID = {"cached": "Lowwater, on the cached prefix", "plain": "Lowwater, with a transcript"}


def _always(summarizer: Summarizer) -> Callable[[int], Summarizer]:
    return lambda _: summarizer


def _judged(point: str, writer: str, request: SummaryRequest, written: Written) -> Judged:
    replaced = sum(TOKENIZER.count(text) for message in request.messages for text in texts_of(message))
    verdict = validate(written, request, TOKENIZER, replaced)
    return Judged(
        point=point,
        writer=writer,
        outcome=outcome(verdict),
        score=round(verdict.score, 4),
        coverage=round(verdict.coverage, 4),
        tokens=TOKENIZER.count(written.text),
        replaced=replaced,
        invented=int(verdict.because.facts["invented"]),
        cut_off=written.cut_off,
    )


def _completion(model: str, text: str, *, cut_off: bool) -> dict[str, Any]:
    counted = TOKENIZER.count(text)
    return {
        "id": "written",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "length" if cut_off else "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": counted, "total_tokens": counted + 1},
    }
