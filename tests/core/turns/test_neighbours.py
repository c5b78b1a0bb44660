"""Two properties of what is sent, for every format and policy, whatever the client takes back on its way.

We add no neighbours of one role that the client did not send, and the newest user message stands word for word outside of a
summary.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import cycle, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lowwater.core.entries import Compacted
from lowwater.core.messages import Format
from lowwater.core.policies.registry import POLICIES
from lowwater.core.view import Summary
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import ScriptedClock, ScriptedSummarizer, tell_the_truth
from lowwater.testing.invariants import Protected, Watch
from lowwater.testing.legality import refusal_of

FORMATS: tuple[Format, ...] = ("anthropic", "openai_chat", "openai_responses")
EVERY_POLICY = pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])
EVERY_FORMAT = pytest.mark.parametrize("format", FORMATS)
COVERING = pytest.mark.parametrize(
    ("policy", "format"), list(zip([policy.name for policy in POLICIES], cycle(FORMATS), strict=False))
)
"""Every policy and every format; all pairs in `make test-full`."""
MODELS: dict[Format, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai_chat": "gpt-5.5",
    "openai_responses": "gpt-6.1-sol",
}


def said(who: str, number: int, words: int) -> str:
    dice = Random(f"{who}{number}")
    return f"{who} {number}: " + " ".join(dice.choice(WORDS) + str(dice.randrange(90)) for _ in range(words))


WORDS = "river engine basket ladder window copper meadow signal harbor velvet".split()


def chat_turn(format: Format, number: int, words: int) -> list[Any]:
    """What a user says and what is answered, plainly."""
    del format
    return [
        {"role": "user", "content": said("question", number, words)},
        {"role": "assistant", "content": said("answer", number, words)},
    ]


def tool_turn(format: Format, number: int, words: int) -> list[Any]:
    """A question, a call, its result and an answer."""
    question, answer = chat_turn(format, number, words // 3)
    call, path, out = f"call_{number}", f"src/part_{number}.py", said("result", number, words)
    arguments = json.dumps({"path": path})
    between: list[Any]
    match format:
        case "anthropic":
            use = {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": path}}
            result = {"type": "tool_result", "tool_use_id": call, "content": out}
            between = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        case "openai_chat":
            function = {"name": "read_file", "arguments": arguments}
            calls = [{"id": call, "type": "function", "function": function}]
            between = [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": call, "content": out},
            ]
        case _:
            between = [
                {"type": "function_call", "call_id": call, "name": "read_file", "arguments": arguments},
                {"type": "function_call_output", "call_id": call, "output": out},
            ]
    return [question, *between, answer]


def written(request: PreparedRequest, format: Format) -> list[dict[str, Any]]:
    """The messages or items of a request in a provider's form."""
    match format:
        case "anthropic":
            listed = request.as_anthropic()["messages"]
        case "openai_chat":
            listed = request.as_openai()["messages"]
        case _:
            listed = request.as_responses()["input"]
    return list(listed)


def roles(messages: Iterable[dict[str, Any]]) -> list[str]:
    return [message.get("role", message.get("type", "")) for message in messages]


def doubled(messages: Sequence[dict[str, Any]]) -> int:
    """How many neighbours have the same role; items of an answer belong together and count as none."""
    return sum(one == two and one in {"user", "assistant"} for one, two in pairwise(roles(messages)))


def texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if isinstance(block, dict) and "text" in block]


def tools(format: Format) -> list[Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    match format:
        case "anthropic":
            return [{"name": "read_file", "input_schema": schema}]
        case "openai_chat":
            return [{"type": "function", "function": {"name": "read_file", "parameters": schema}}]
        case _:
            return [{"type": "function", "name": "read_file", "parameters": schema}]


class Client:
    """A client that keeps its whole list, sends it every turn, and sometimes takes back what it said last."""

    def __init__(
        self, policy: str, format: Format, *, context: int, first: int, last: int, store: str = "memory:"
    ) -> None:
        compression = CompressionSettings(protect_first_n=first, protect_last_n=last, summary_min_tokens=300)
        self.lowwater = Lowwater(
            model=MODELS[format],
            policy=policy,
            settings=Settings(compression=compression),
            clock=ScriptedClock(1_000.0),
            summarizer=ScriptedSummarizer(tell_the_truth),
            store=store,
        )
        self.session: Session = self.lowwater.session("client")
        self.session.learn_context_length(context)
        self.format = format
        self.list: list[Any] = []
        self.summaries = 0
        self.watch = Watch(Protected(first=1, last=0, never_prune=(), notes_in_system=True))

    def says(self, turn: Sequence[Any]) -> None:
        """Send up to and with each message that is the model's to answer, and take the answer as it is."""
        for message in turn:
            if message.get("role") == "assistant" or message.get("type") == "function_call":
                self.sends()
            self.list.append(message)

    def takes_back(self, turns: int) -> None:
        """Go back to before one of its last questions, or to right behind it."""
        asked = [at for at, message in enumerate(self.list) if is_question(message)]
        if len(asked) > turns:
            del self.list[asked[-turns] :]

    def goes_on_from_a_result(self, back: int) -> None:
        """Go back to right behind a tool result, and have that answered once more."""
        results = [at for at, message in enumerate(self.list) if is_result(message)]
        if len(results) > back:
            del self.list[results[-back] + 1 :]
            self.sends()
            self.list.append({"role": "assistant", "content": said("again", len(self.list), 20)})

    def sends(self) -> None:
        request = self.session.prepare(self.list, tools=tools(self.format))
        self.summaries += any(isinstance(item, Summary) for item in internals(self.session).ledger.view.items)
        sent = written(request, self.format)
        assert doubled(sent) <= doubled(self.list), roles(sent)
        newest = next(
            text for message in reversed(self.list) if is_question(message) for text in texts(message)
        )
        assert any(text == newest for message in sent for text in texts(message)), "the newest user message"
        body = {"model": MODELS[self.format], **request_fields(request, self.format)}
        assert refusal_of(body, self.format) is None
        self.watch.see(internals(self.session).ledger, request.messages)


def request_fields(request: PreparedRequest, format: Format) -> dict[str, Any]:
    match format:
        case "anthropic":
            return {"max_tokens": 100, **request.as_anthropic()}
        case "openai_chat":
            return request.as_openai()
        case _:
            return request.as_responses()


def is_result(message: Any) -> bool:
    content = message.get("content")
    in_blocks = isinstance(content, list) and content[0]["type"] == "tool_result"
    return bool(in_blocks) or message.get("role") == "tool" or message.get("type") == "function_call_output"


def is_question(message: Any) -> bool:
    return message.get("role") == "user" and any(text.startswith("question") for text in texts(message))


def play(policy: str, format: Format, seed: int, *, turns: int) -> Client:
    dice = Random(seed)
    context, first, last = dice.choice((8_000, 16_000)), dice.choice((1, 2, 3)), dice.choice((1, 2, 5, 20))
    client = Client(policy, format, context=context, first=first, last=last)
    kind = dice.choice(("chat", "tools", "mixed"))
    for number in range(turns):
        plain = kind == "chat" or (kind == "mixed" and number % 3 > 0)
        client.says((chat_turn if plain else tool_turn)(format, number, dice.choice((20, 150, 400))))
        if dice.randrange(6) == 0:
            (client.takes_back if plain else client.goes_on_from_a_result)(dice.randrange(1, 5))
    return client


@COVERING
def test_no_neighbours_of_one_role_are_added_and_the_newest_words_stand(policy: str, format: Format) -> None:
    for seed in (1, 2):
        play(policy, format, seed, turns=24)


@pytest.mark.full
@EVERY_POLICY
@EVERY_FORMAT
def test_in_many_conversations_no_neighbours_of_one_role_are_added(policy: str, format: Format) -> None:
    assert sum(play(policy, format, seed, turns=60).summaries for seed in range(3, 18)) or policy == "never"


@COVERING
@pytest.mark.parametrize("first", [1, 2])
def test_a_plain_chat_that_a_size_forces_into_a_summary_keeps_alternating(
    policy: str, format: Format, first: int
) -> None:
    client = Client(policy, format, context=8_000, first=first, last=3)
    for number in range(14):
        client.says(chat_turn(format, number, 300))
    assert client.summaries, "or it shows nothing"


def looped(format: Format, number: int, words: int, calls: int) -> list[Any]:
    """A question that is worked on in many calls, and no answer yet."""
    question, *_ = tool_turn(format, number, words)
    steps = [tool_turn(format, 1_000 * (number + 1) + step, words)[1:-1] for step in range(calls)]
    return [question, *(message for step in steps for message in step)]


@COVERING
def test_a_question_that_went_into_a_summary_is_shown_again_when_what_followed_is_taken_back(
    policy: str, format: Format
) -> None:
    client = Client(policy, format, context=8_000, first=1, last=2)
    for number in range(3):
        client.says(chat_turn(format, number, 20))
    client.says(looped(format, 3, 150, 12))
    kept = len(client.list)
    client.list.append({"role": "assistant", "content": said("interim", 4, 20)})
    client.list.append({"role": "user", "content": said("question", 5, 20)})
    client.sends()
    client.session.compress()
    shown = [text for message in written(client.session.prepare(), format) for text in texts(message)]
    assert not any(text.startswith("question 3") for text in shown), "it went into the summary"
    del client.list[kept:]
    client.sends()
    entries = internals(client.session).ledger.entries
    assert sum(isinstance(entry, Compacted) and entry.mechanisms == ("repeat",) for entry in entries) == 1
    client.list.append({"role": "assistant", "content": said("answer", 3, 20)})
    for number in range(6, 12):
        client.says(tool_turn(format, number, 150))


@EVERY_FORMAT
def test_what_is_shown_again_stays_when_the_session_is_opened_again_and_goes_on_a_rewind(
    format: Format, tmp_path: Path
) -> None:
    client = Client(
        "threshold", format, context=8_000, first=1, last=2, store=f"sqlite:///{tmp_path / 's.db'}"
    )
    client.says(chat_turn(format, 0, 20))
    client.says(looped(format, 3, 150, 12))
    kept = len(client.list)
    client.list += [
        {"role": "assistant", "content": "Soon."},
        {"role": "user", "content": said("question", 5, 20)},
    ]
    client.sends()
    client.session.compress()
    client.session.checkpoint("with the later question")
    del client.list[kept:]
    client.sends()
    view = client.session.view()
    again = client.lowwater.session("client")
    assert again.view() == view
    again.rewind("with the later question", discard_later=True)
    assert any("question 5" in text for message in again.view() for text in texts(message))
