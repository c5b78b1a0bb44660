"""Plays a conversation through a session, under a policy, and notes everything a caller can see of it as plain data.

Texts (messages of requests, answers of the recall tools) are noted by their digests; `Texts` keeps what they stand for.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from msgspec import Struct

from lowwater import Lowwater, ModelSummarizer, PreparedRequest, Session, SummaryRequest, Written
from lowwater.session.internals import internals
from lowwater.testing.fakes import ScriptedClock, ScriptedSummarizer, cut_off, lie, refuse, tell_the_truth
from tests.golden.conversations import Conversation, Turn

Noted = dict[str, Any]
_MARK = re.compile(r',"(?:cache_control|prompt_cache_breakpoint)":\{[^}]*\}')
_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
_WORD = re.compile(r"[\w./-]{6,}")
_LIFETIME = 300


class Run(Struct, frozen=True, kw_only=True):
    """One way to play a conversation."""

    name: str
    policy: str = "rent-or-buy"
    summaries: str = ""
    """Who writes them: nobody, a `script`, or a `model` that is asked over HTTP."""
    recall: bool = False
    """Put the recall tools into requests, and call them at the end."""
    whole: bool = False
    """Give the whole list to every `prepare`, as a client that keeps one; otherwise append what is new."""
    settings: dict[str, Any] = {}


RUNS = (
    Run(name="default"),
    Run(name="scripted-summaries", summaries="script", recall=True),
    Run(name="threshold", policy="threshold", summaries="script", whole=True),
    Run(name="runway", policy="runway"),
    Run(
        name="model-summaries",
        summaries="model",
        recall=True,
        whole=True,
        settings={"model": {"native_compaction": True}},
    ),
    Run(name="guarded", policy="guarded", summaries="model"),
    Run(name="hermes-classic", policy="hermes-classic", summaries="script"),
    Run(name="hygiene", policy="hygiene", whole=True),
    Run(name="prune-naive", policy="prune-naive", recall=True),
    Run(name="never", policy="never", whole=True),
    Run(name="small-pieces", policy="guarded", settings={"leaf": {"leaf_chunk_tokens": 3000}}),
    Run(
        name="ceiling",
        settings={
            "compression": {"max_view_tokens": 9000, "protect_last_n": 6},
            "model": {"cache_ttl": "auto"},
        },
    ),
)
_WINDOWS = (0.4, 0.55, 0.8)
"""Shares of a conversation that fit into the window."""
_SMALLEST = 8_000


def runs_of(conversation: Conversation, number: int) -> list[tuple[Run, int]]:
    """Return how a conversation is played, by its number: the default policy and two others, each with its window."""
    others = RUNS[1:]
    chosen = [RUNS[0], *(others[(number * 4 + step) % len(others)] for step in range(2))]
    tokens = len(msgspec.json.encode(conversation)) // 4
    shares = [_WINDOWS[(number + at) % len(_WINDOWS)] for at in range(len(chosen))]
    return [(run, max(_SMALLEST, int(tokens * share))) for run, share in zip(chosen, shares, strict=True)]


class Texts:
    """Texts by their digests."""

    def __init__(self) -> None:
        self.by_digest: dict[str, str] = {}

    def note(self, text: str) -> str:
        """Return the digest of a text."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.by_digest.setdefault(digest, text)
        return digest

    def note_parts(self, body: Noted) -> list[str]:
        """Return the digests of a request's parts, the list of messages last: each message, each tool, each other field."""
        digests: list[str] = []
        for key in sorted(body, key=lambda key: (key in ("messages", "input"), key)):
            parts = body[key] if isinstance(body[key], list) else [body[key]]
            digests += [self.note(f"{key}: {msgspec.json.encode(part).decode()}") for part in parts]
        return digests


class Provider:
    """Bills requests by their bytes: what the one before began with as well is read from the cache for five minutes."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._before: list[str] = []
        self._at = 0.0

    def bill(self, parts: list[str], at: float) -> tuple[int, int]:
        """Return the tokens of a request, and how many of them were read from the cache."""
        plain = [_MARK.sub("", self._texts.by_digest[part]) for part in parts]
        sizes = [len(text) * 10 // 37 for text in plain]
        shared = common(self._before, plain) if at - self._at <= _LIFETIME else 0
        self._before, self._at = plain, at
        return sum(sizes), sum(sizes[:shared])


class ScriptedModel(httpx2.BaseTransport):
    """Answers every request for a summary with what it is told to say; `asked` are the bodies it got."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.says = ""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer in the format of the URL; a request to compact is answered with a signed block."""
        body = request.read().decode()
        self.asked.append(body)
        format = "openai_chat"
        content: Any = self.says
        if request.url.path.endswith("/messages"):
            format, content = "anthropic", [{"type": "text", "text": self.says}]
            if json.loads(body).get("compaction"):
                content = [{"type": "compaction", "content": self.says, "signature": "signed"}]
        message = {"role": "assistant", "content": content}
        return httpx2.Response(200, json=answer(format, "writer", [message], len(body) // 4, 0, 500))


class TruthfulSummarizer(ModelSummarizer):
    """Asks a scripted model, which is told what a truthful summary says."""

    def __init__(self, model: str, scripted: ScriptedModel) -> None:
        super().__init__(model=model, api_key="k", client=httpx2.Client(transport=scripted))
        self._scripted = scripted

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Have the model write the summary."""
        self._scripted.says = tell_the_truth(request).text
        return super().summarize(request)


def answer(format: str, model: str, messages: list[Any], prompt: int, read: int, output: int) -> Noted:
    """Return the model's answer as the API of the format gives it."""
    if format == "anthropic":
        (message,) = messages
        counts = {"cache_read_input_tokens": read, "cache_creation_input_tokens": prompt - read}
        usage: Noted = {"input_tokens": 3, **counts, "output_tokens": output}
        stop = "compaction" if '"type": "compaction"' in json.dumps(message) else "end_turn"
        return {"type": "message", "model": model, **message, "stop_reason": stop, "usage": usage}
    cached = {"cached_tokens": read}
    if format == "openai_chat":
        usage = {"prompt_tokens": prompt, "prompt_tokens_details": cached, "completion_tokens": output}
        choices = [{"index": 0, "finish_reason": "stop", "message": message} for message in messages]
        return {"object": "chat.completion", "model": model, "choices": choices, "usage": usage}
    usage = {"input_tokens": prompt, "input_tokens_details": cached, "output_tokens": output}
    return {"object": "response", "status": "completed", "model": model, "output": messages, "usage": usage}


def common(before: list[str], now: list[str]) -> int:
    """Return how many items two lists begin with alike."""
    return next(
        (at for at, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now))
    )


def body_of(request: PreparedRequest, format: str) -> Noted:
    """Return a request as it is sent in this format."""
    if format == "anthropic":
        return request.as_anthropic()
    return request.as_openai() if format == "openai_chat" else request.as_responses()


class Player:
    """Plays one conversation in one way; the session is kept in the store of the file."""

    def __init__(
        self, conversation: Conversation, run: Run, *, window: int, sent_as: str, store: Path, texts: Texts
    ) -> None:
        self._conversation, self._run, self._sent_as, self._texts = conversation, run, sent_as, texts
        self._clock = ScriptedClock(conversation.turns[0].at)
        self._model = ScriptedModel()
        self._provider = Provider(texts)
        self._library = Lowwater(
            model=conversation.model,
            policy=run.policy,
            summarizer=self._summarizers(),
            settings={**run.settings, "output": {"quiet": True}},
            store=f"sqlite:///{store}?sync=normal",
            clock=self._clock,
        )
        self._session = self._library.session(run.name, source="golden")
        self._session.learn_context_length(window)
        self._held: list[Any] = []
        self._sent: list[str] = []
        self._code = ""

    def play(self) -> Noted:
        """Play it to the end and return what was noted."""
        turns = [self._turn(turn) for turn in self._conversation.turns]
        noted: Noted = {"turns": turns, "explained": self._explained()}
        noted["recalled"] = self._recalled() if self._run.recall else []
        noted["by_hand"] = self._by_hand()
        noted["asked_for_summaries"] = [self._texts.note(body) for body in self._model.asked]
        self._library.close()
        return noted

    def _summarizers(self) -> list[Any]:
        if self._run.summaries == "script":
            acts = (tell_the_truth, lie, tell_the_truth, refuse, cut_off, tell_the_truth)
            return [ScriptedSummarizer(*acts)]
        if self._run.summaries == "model":
            return [TruthfulSummarizer(self._conversation.model, self._model)]
        return []

    def _turn(self, turn: Turn) -> Noted:
        self._clock.advance(max(0.0, turn.at - self._clock.now()))
        request = self._prepared(turn.new)
        parts = self._texts.note_parts(body_of(request, self._sent_as))
        kept, before, self._sent = common(self._sent, parts), self._sent, parts
        noted: Noted = {**self._decided(), "tokens": request.tokens, "kept": kept, "of": len(before)}
        noted["new"] = parts[kept:]
        prompt, read = self._provider.bill(parts, turn.at)
        self._clock.advance(max(0.0, turn.answered_at - self._clock.now()))
        output = turn.usage["output"]
        form, model = self._conversation.format, self._conversation.model
        self._session.record(answer(form, model, turn.answer, prompt, read, output))
        self._held += [*turn.new, *turn.answer]
        if self._run.summaries == "model" and len(self._held) % 7 == 0:
            noted["parked"] = self._session.prefetch_summary()
        return noted

    def _prepared(self, new: list[Any]) -> PreparedRequest:
        system, tools = self._conversation.system or None, list(self._conversation.tools)
        form = self._conversation.format
        if self._run.recall and form != "openai_responses":
            own = self._session.recall_tools()
            tools += own.anthropic if form == "anthropic" else own.openai
        if self._run.whole:
            return self._session.prepare([*self._held, *new], system=system, tools=tools)
        self._session.append(new)
        return self._session.prepare(system=system, tools=tools, offers_recall=self._run.recall)

    def _decided(self) -> Noted:
        """Return the reason of the decision and its numbers; where the reason is another than before, those of `explain` too."""
        decision = internals(self._session).decision
        assert decision is not None
        noted: Noted = {"code": decision.because.code, "facts": decision.because.facts}
        if self._code != decision.because.code:
            noted["explained"] = self._explained()
        self._code = decision.because.code
        return noted

    def _explained(self) -> list[str]:
        """Return the numbers that `explain` names, in an order that does not depend on its sentences."""
        return sorted(_NUMBER.findall(self._session.explain()))

    def _recalled(self) -> list[str]:
        tools = self._session.recall_tools()
        middle = self._conversation.turns[len(self._conversation.turns) // 2]
        words = " ".join(_WORD.findall(str(middle.new))[:4])
        asked: list[tuple[str, Noted]] = [
            ("lowwater_search", {"query": words}),
            ("lowwater_search", {"query": "error failed test", "limit": 3}),
            ("lowwater_expand", {"handle": "lw:2-30"}),
            ("lowwater_expand", {"handle": "lw:3", "lines": [1, 5]}),
            ("lowwater_expand", {"handle": "lw:2-60", "around": words}),
            ("lowwater_expand", {"handle": "lw:100000"}),
        ]
        return [self._texts.note(tools.handle(name, arguments)) for name, arguments in asked]

    def _by_hand(self) -> Noted:
        """Return what the model is shown after a compaction by hand, and after going back to before the first one."""
        session = self._session
        session.compress(focus="tests")
        noted: Noted = {"code": self._last_code(session), "compressed": self._shown(session)}
        checkpoints = session.checkpoints()
        noted["checkpoints"] = [[each.name, each.tokens, each.messages] for each in checkpoints]
        if checkpoints:
            session.rewind(checkpoints[0].name)
            noted["rewound"] = self._shown(session)
        noted["history"] = self._texts.note_parts({"messages": session.history()})[-1]
        return noted

    def _last_code(self, session: Session) -> str:
        decision = internals(session).decision
        return decision.because.code if decision else ""

    def _shown(self, session: Session) -> list[str]:
        return self._texts.note_parts({"messages": session.view()})
