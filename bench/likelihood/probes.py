"""Questions about a session whose answers its messages tell exactly, and whether the model gets them right over each view.

An answer counts as right if the model would write exactly it: each of its tokens, and the end behind them, is the likeliest after the ones
before. Kinds that it gets right less than `NEEDED` of the time with the full prompt say nothing and are not shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bench.likelihood.inputs import FULL, Case, Pieces, Spot
from bench.likelihood.points import Decision
from bench.likelihood.prompts import END, Chat, encode, prompt_pieces, prompt_tokens
from bench.likelihood.views import newest, view_and_recall
from lowwater.core.formats.codec import decode_messages, raw_messages
from lowwater.core.messages import Message, ToolCall
from lowwater.core.summary.instructions import standing_instructions
from lowwater.core.tools import arguments_of, classify, path_of, subject_of

CEILING = 0.25
NEEDED = 0.7
LONGEST = 40
"""Tokens of an answer."""
_FAILED = re.compile(r"^(?:FAILED|--- FAIL:|FAIL:|not ok \d+ -)\s+([^\s(]+)", re.MULTILINE)
_OPEN = ("in_progress", "pending", "not_started", "open")


class Probe(Struct, frozen=True, kw_only=True):
    """A question, the one right answer, and the words to search for."""

    kind: str
    question: str
    answer: str
    words: str


def probes_of(messages: Sequence[Chat]) -> list[Probe]:
    """Return the questions that this conversation answers exactly, at most one of a kind."""
    decoded = decode_messages(raw_messages([dict(each) for each in messages]), "openai_chat")
    calls = [call for message in decoded for call in message.calls]
    found = [
        _asked(
            "edited last",
            "Which file was edited or written last? Answer with its path alone, exactly as in the call.",
            _last([path_of(call) for call in calls if classify(call.name) == "write"]),
            "edited file",
        ),
        _asked(
            "read first",
            "Which file was read first? Answer with its path alone, exactly as in the call.",
            next((path_of(call) for call in calls if classify(call.name) == "read" and path_of(call)), ""),
            "read file",
        ),
        _asked(
            "first command",
            "What was the first command that was run in the shell? Answer with the command alone.",
            next((subject_of(call) for call in calls if classify(call.name) == "shell"), ""),
            "command",
        ),
        _asked(
            "failed first",
            "Which test failed first? Answer with its name alone, exactly as the output has it.",
            _first_failed(decoded),
            "FAILED test",
        ),
        _asked(
            "laid down",
            "Which standing instruction did the user give? Answer with the user's sentence alone, word for word.",
            _laid_down(decoded),
            "instruction user never always",
        ),
        _asked(
            "still open",
            "Which item of the list of things to do comes next? Answer with its text alone, exactly as in the list.",
            _open_item(calls),
            "todo list",
        ),
    ]
    return [probe for probe in found if probe is not None]


def cases_of(decision: Decision) -> Iterator[Case]:
    """Yield a case for each question: the full prompt, Lowwater's view with and without what recall finds, and the newest messages."""
    messages = decision.messages
    for probe in probes_of(messages):
        asked: Chat = {"role": "user", "content": probe.question}
        ours, recalled = view_and_recall(messages, round(CEILING * decision.point.tokens), probe.words)
        views: dict[str, list[Chat]] = {
            FULL: [*messages, asked],
            f"lowwater-{CEILING:.0%}": [*ours, asked],
            f"lowwater+recall-{CEILING:.0%}": [*ours, asked, *recalled],
        }
        short = newest(messages, len(prompt_tokens(ours)))
        if short:
            views[f"newest-{CEILING:.0%}"] = [*short, asked]
        yield probe_case(decision, probe, views)


def probe_case(decision: Decision, probe: Probe, views: Mapping[str, Sequence[Chat]]) -> Case:
    """Return the case of a question at the end of each of these conversations."""
    pieces = Pieces()
    numbered = {name: pieces.add(prompt_pieces(each, for_call=False)) for name, each in views.items()}
    answer = (*encode(probe.answer), END)
    return Case(
        point=f"{decision.point.name} {probe.kind}",
        action=answer,
        kinds=("prose",) * len(answer),
        spots=(Spot(kind=probe.kind, tokens=tuple(range(len(answer)))),),
        pieces=pieces.all(),
        views=numbered,
    )


def _asked(kind: str, question: str, answer: str, words: str) -> Probe | None:
    if not answer or "\n" in answer or len(encode(answer)) > LONGEST:
        return None
    return Probe(kind=kind, question=question, answer=answer, words=words)


def _last(paths: Sequence[str]) -> str:
    return next((path for path in reversed(paths) if path), "")


def _first_failed(messages: Sequence[Message]) -> str:
    for message in messages:
        for result in message.results:
            failed = _FAILED.search(result.text)
            if failed is not None:
                return failed[1]
    return ""


def _laid_down(messages: Sequence[Message]) -> str:
    """Return the one standing instruction of the user's; nothing if there are several."""
    said = [
        sentence
        for message in messages
        if message.role == "user" and not message.results
        for sentence in standing_instructions(message.text)
    ]
    return said[0] if len(said) == 1 else ""


def _open_item(calls: Sequence[ToolCall]) -> str:
    """Return the first open item of the newest list of things to do, one in progress before others."""
    for call in reversed(calls):
        items = arguments_of(call).get("todos") or arguments_of(call).get("plan")
        if classify(call.name) == "todo" and isinstance(items, list):
            told = [each for each in items if isinstance(each, dict)]
            for state in _OPEN:
                for item in told:
                    text = item.get("content") or item.get("step")
                    if item.get("status") == state and isinstance(text, str):
                        return text
            return ""
    return ""
