"""The built-in scripted model, for trying everything without a key or a network."""

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lowwater.chat.protocol import STOPPED, Show, text_answer, usage_fields
from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format, Message
from lowwater.core.models.model import MarkedPrefixes, Model, SteppedPrefixes
from lowwater.core.strict_json import write_json
from lowwater.core.wording import counted
from lowwater.errors import AnswerFailed, PromptTooLong
from lowwater.protocols import Tokenizer

INTRODUCTION = """\
I am a script, not a model: I answer without a key and without a network, and what I cost is worked out from a real \
model's prices and cache rules. I understand:

  look around           list the files and read the README
  read FILE             find PATTERN          run COMMAND
  write FILE: TEXT      plan ONE, TWO, THREE  remember SOMETHING
  recall WORDS          search what was said earlier, even if it was compacted
  work for 40 steps     read a lot, so that the window fills and is compacted
  count to 500          a long answer: Ctrl-C stops it

Commands such as /status, /context, /compress, /model and /rewind are yours: /help lists them."""


# The script: what it understands, and what it does then

_MOST_STEPS = 500
_MOST_NUMBERS = 5_000
_LINES_OF_A_STEP = 150
_PATTERNS = ("def ", "class ", "import ", "return ", "raise ", "for ")


class Speak(Struct, frozen=True, kw_only=True):
    """Answer with text; that ends the turn."""

    text: str


class ScriptedToolCall(Struct, frozen=True, kw_only=True):
    """One tool call."""

    tool: str
    arguments: Mapping[str, Any]


class UseTool(Struct, frozen=True, kw_only=True):
    """Call tools, with some text before the calls."""

    text: str
    calls: tuple[ScriptedToolCall, ...]


ScriptedAct = Speak | UseTool
ScriptedTask = Generator[ScriptedAct, Sequence[str], None]
"""Yields acts; the tool results of each are sent to it."""


def use(text: str, tool: str, **arguments: object) -> UseTool:
    """Return the act of calling one tool."""
    return UseTool(text=text, calls=(ScriptedToolCall(tool=tool, arguments=arguments),))


def task_for(said: str, sources: Path) -> ScriptedTask:
    """Return the task for what the user said; `sources` has files to work on."""
    text = " ".join(said.split())
    for pattern, begin in _UNDERSTOOD.items():
        found = re.fullmatch(pattern, text, re.IGNORECASE)
        if found:
            return begin(found, sources)
    return _one(Speak(text=INTRODUCTION))


def lost() -> ScriptedTask:
    """Return the answer to results of tools that an earlier process called."""
    return _one(Speak(text="I have lost the thread: tell me again what to do."))


def _one(act: ScriptedAct) -> ScriptedTask:
    yield act


def _read(found: re.Match[str], _sources: Path) -> ScriptedTask:
    outputs = yield use(f"I will read {found[1]}.", "read_file", path=found[1])
    yield Speak(text=f"I have read it. {_gist(outputs)}")


def _find(found: re.Match[str], _sources: Path) -> ScriptedTask:
    outputs = yield use("Let me search.", "search", pattern=found[1])
    yield Speak(text=f"That is what I found. {_gist(outputs)}")


def _run(found: re.Match[str], _sources: Path) -> ScriptedTask:
    outputs = yield use("I will run it.", "shell", command=found[1])
    yield Speak(text=f"Done. {_gist(outputs)}")


def _write(found: re.Match[str], _sources: Path) -> ScriptedTask:
    outputs = yield use(f"I will write {found[1]}.", "write_file", path=found[1], content=f"{found[2]}\n")
    yield Speak(text=outputs[0])


def _plan(found: re.Match[str], _sources: Path) -> ScriptedTask:
    wanted = [each.strip() for each in found[1].split(",") if each.strip()]
    states = ["doing"] + ["open"] * (len(wanted) - 1)
    items = [{"text": text, "state": state} for text, state in zip(wanted, states, strict=True)]
    outputs = yield use("I will write that down.", "todo", items=items)
    yield Speak(text=f"This is the plan:\n{outputs[0]}")


def _remember(found: re.Match[str], _sources: Path) -> ScriptedTask:
    outputs = yield use("I will remember that.", "memory", action="add", note=found[1])
    yield Speak(text=f"Noted. {_gist(outputs)}")


def _recall(found: re.Match[str], _sources: Path) -> ScriptedTask:
    outputs = yield use("Let me look that up.", "lowwater_search", query=found[1])
    yield Speak(text=f"This is what was said earlier:\n{outputs[0][:1_500]}")


def _look_around(_found: re.Match[str], _sources: Path) -> ScriptedTask:
    files, _ = yield UseTool(
        text="I will see what is here.",
        calls=(
            ScriptedToolCall(tool="search", arguments={"limit": 200}),
            ScriptedToolCall(tool="search", arguments={"pattern": "TODO|FIXME", "limit": 20}),
        ),
    )
    readme = next((name for name in files.splitlines() if name.lower().startswith("readme")), "")
    if readme:
        outputs = yield use("There is a README.", "read_file", path=readme, limit=60)
        yield Speak(text=f"I have looked around. {_gist([files])} {_gist(outputs)}")
    else:
        yield Speak(text=f"I have looked around. {_gist([files])} There is no README.")


def _work(found: re.Match[str], sources: Path) -> ScriptedTask:
    steps, files = min(int(found[1]), _MOST_STEPS), sorted(sources.rglob("*.py"))
    files = [file for file in files if file.stat().st_size > 2_000]
    characters = 0
    for step in range(steps):
        chosen = files[step * 7 % len(files)], files[(step * 7 + 3) % len(files)]
        calls = [
            ScriptedToolCall(tool="read_file", arguments={"path": str(file), "limit": _LINES_OF_A_STEP})
            for file in chosen
        ]
        calls.append(
            ScriptedToolCall(
                tool="search", arguments={"pattern": _PATTERNS[step % len(_PATTERNS)], "limit": 20}
            )
        )
        outputs = yield UseTool(text=f"Step {step + 1} of {steps}.", calls=tuple(calls))
        characters += sum(map(len, outputs))
    yield Speak(text=f"I have worked for {counted(steps, 'step')} and read {characters:,} characters.")


def _count(found: re.Match[str], _sources: Path) -> ScriptedTask:
    most = min(int(found[1]), _MOST_NUMBERS)
    yield Speak(text=" ".join(str(number) for number in range(1, most + 1)))


def _gist(outputs: Sequence[str]) -> str:
    """Return the first line of a result and its size, as a comment by somebody who has read it."""
    text = outputs[0] if outputs else ""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    return f"It begins with “{first[:100]}” and has {counted(len(text), 'character')}."


_UNDERSTOOD: MappingProxyType[str, Callable[[re.Match[str], Path], ScriptedTask]] = MappingProxyType(
    {
        r"look around\.?": _look_around,
        r"read (\S+)": _read,
        r"find (.+)": _find,
        r"run (.+)": _run,
        r"write (\S+): (.+)": _write,
        r"plan (.+)": _plan,
        r"remember (?:that )?(.+)": _remember,
        r"recall (.+)": _recall,
        r"work for (\d{1,4}) steps?": _work,
        r"count to (\d{1,6})": _count,
    }
)


# The simulated cache

_LIFETIME = 300
"""Seconds, if the model's cache has no known lifetime."""
_LEAST = 1_024
"""The fewest tokens that are cached, if the model has no known minimum."""
_REMEMBERED = 8
"""How many of the last prompts are kept."""
_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})


class _Piece(Struct, frozen=True, kw_only=True):
    digest: bytes
    tokens: int


class PrefixCache:
    """Simulates a provider's cache: the longest prefix that a prompt shares with one of the last calls is a cache read."""

    def __init__(self, model: Model, tokenizer: Tokenizer, *, scale: float) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._scale = scale
        self._prompts: list[tuple[float, tuple[bytes, ...]]] = []
        self._sizes: dict[bytes, int] = {}

    def bill(self, fields: Mapping[str, Any], at: float) -> Usage:
        """Return the input usage that a call is billed at this moment, and remember its prompt."""
        pieces = self._pieces(fields)
        prompt = tuple(piece.digest for piece in pieces)
        lifetime = self._model.cache.ttl or _LIFETIME
        alive = [known for known in self._prompts if at - known[0] <= lifetime]
        shared = max((_shared(known, prompt) for _, known in alive), default=0)
        read = self._readable(sum(piece.tokens for piece in pieces[:shared]))
        rest = sum(piece.tokens for piece in pieces) - read
        self._prompts = [*alive, (at, prompt)][-_REMEMBERED:]
        if isinstance(self._model.cache.matching, MarkedPrefixes):
            return Usage(cache_read=read, cache_write=rest)
        return Usage(cache_read=read, uncached=rest)

    def count(self, text: str) -> int:
        """Return the size of a text in the model's tokens."""
        return round(self._scale * self._tokenizer.count(text))

    def _readable(self, tokens: int) -> int:
        if tokens < (self._model.cache.min_cacheable or _LEAST):
            return 0
        matching = self._model.cache.matching
        step = matching.tokens if isinstance(matching, SteppedPrefixes) and matching.tokens else 1
        return tokens - tokens % step

    def _pieces(self, fields: Mapping[str, Any]) -> Sequence[_Piece]:
        before = [fields[name] for name in ("tools", "system") if name in fields]
        return [self._piece(write_json(_unmarked(each))) for each in [*before, *fields["messages"]]]

    def _piece(self, raw: bytes) -> _Piece:
        digest = blake2b(raw, digest_size=16).digest()
        if digest not in self._sizes:
            self._sizes[digest] = self.count(raw.decode())
        return _Piece(digest=digest, tokens=self._sizes[digest])


def _shared(known: Sequence[bytes], prompt: Sequence[bytes]) -> int:
    return next(
        (at for at, (one, other) in enumerate(zip(known, prompt, strict=False)) if one != other),
        min(len(known), len(prompt)),
    )


def _unmarked(value: object) -> object:
    """Return content without cache marks; a text that was made a block to carry one becomes plain text again."""
    match value:
        case dict():
            return {name: _unmarked(inner) for name, inner in value.items() if name not in _MARKS}
        case [{"type": "text", "text": str(text), **others}] if set(others) <= _MARKS:
            return text
        case list():
            return [_unmarked(inner) for inner in value]
        case _:
            return value


# The model

_WORD = re.compile(r"\s*\S+|\s+$")


class ScriptedUpstream:
    """Replaces `model`: answers by a script and reports usage by the model's rules; nothing is sent or paid."""

    base_url = ""

    def __init__(
        self,
        name: str,
        model: Model,
        tokenizer: Tokenizer,
        *,
        sources: Path,
        scale: float = 1.0,
        pace: float = 0.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.model = name
        self.format: Format = "anthropic" if model.provider == "anthropic" else "openai_chat"
        self.max_output = model.max_output
        self._context = model.context_length
        self._cache = PrefixCache(model, tokenizer, scale=scale)
        self._sources = sources
        self._pace = pace
        self._now = now
        self._begun = f"{int(now() * 1_000):x}"
        self._calls = 0
        self._task: ScriptedTask | None = None

    def ask(self, fields: Mapping[str, Any], *, max_tokens: int, show: Show) -> bytes:  # noqa: ARG002  # it is short
        """Return the answer to the newest message, its words shown one by one."""
        usage = self._cache.bill(fields, self._now())
        if usage.prompt > self._context:
            said = f"the request is longer than the model's window of {self._context:,} tokens"
            raise PromptTooLong(said, limit=self._context)
        act = self._act(decode_messages([write_json(each) for each in fields["messages"]], self.format))
        shown: list[str] = []
        try:
            for word in _WORD.findall(act.text):
                shown.append(word)
                show(word)
                if self._pace:
                    time.sleep(self._pace)
        except KeyboardInterrupt:
            said = "".join(shown)
            raise AnswerFailed(STOPPED, text=said, usage=self._with_output(usage, said)) from None
        return self._written(act, self._with_output(usage, act.text))

    def keep_warm(self, fields: Mapping[str, Any]) -> bytes:
        """Bill sending an earlier prompt once more."""
        usage = replace(self._cache.bill(fields, self._now()), output=1)
        return text_answer(".", usage, self.format, model=self.model)

    def _act(self, messages: Sequence[Message]) -> ScriptedAct:
        """Begin the task that the user just gave, or continue it if tools have answered."""
        newest = messages[-1]
        if not newest.results or newest.text.strip():
            self._task = task_for(newest.text, self._sources)
            return next(self._task)
        if self._task is None:
            self._task = lost()
            return next(self._task)
        return self._task.send(_results(messages))

    def _with_output(self, usage: Usage, text: str) -> Usage:
        return replace(usage, output=self._cache.count(text) + 1)

    def _written(self, act: ScriptedAct, usage: Usage) -> bytes:
        calls = [(self._id(), call) for call in act.calls] if isinstance(act, UseTool) else []
        if self.format == "anthropic":
            uses = [
                {"type": "tool_use", "id": id, "name": call.tool, "input": call.arguments}
                for id, call in calls
            ]
            content: list[dict[str, Any]] = [{"type": "text", "text": act.text}, *uses]
            stop = "end_turn" if isinstance(act, Speak) else "tool_use"
            return write_json(
                {"role": "assistant", "content": content, "stop_reason": stop, "model": self.model}
                | {"usage": usage_fields(usage, self.format)}
            )
        message: dict[str, Any] = {"role": "assistant", "content": act.text}
        if calls:
            message["tool_calls"] = [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": write_json(call.arguments).decode()},
                }
                for id, call in calls
            ]
        choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
        return write_json(
            {"choices": [choice], "model": self.model, "usage": usage_fields(usage, self.format)}
        )

    def _id(self) -> str:
        self._calls += 1
        return f"call_{self._begun}_{self._calls}"


def _results(messages: Sequence[Message]) -> list[str]:
    """Return the texts of the tool results since the last answer."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        texts = [*(result.text for result in message.results), *texts]
    return texts
