"""What the scripted model understands, and how it goes about it."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

from lowwater.chat.scripted.acts import Act, Call, Speak, Task, Use, use
from lowwater.core.wording import counted

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

_MOST_STEPS = 500
_MOST_NUMBERS = 5_000
_LINES_OF_A_STEP = 150
_PATTERNS = ("def ", "class ", "import ", "return ", "raise ", "for ")


def task_for(said: str, sources: Path) -> Task:
    """Return how the script answers; `sources` has files for it to work on."""
    text = " ".join(said.split())
    for pattern, begin in _UNDERSTOOD.items():
        found = re.fullmatch(pattern, text, re.IGNORECASE)
        if found:
            return begin(found, sources)
    return _one(Speak(text=INTRODUCTION))


def lost() -> Task:
    """Return how it answers tool results that it asked for in another life."""
    return _one(Speak(text="I have lost the thread: tell me again what to do."))


def _one(act: Act) -> Task:
    yield act


def _read(found: re.Match[str], _sources: Path) -> Task:
    outputs = yield use(f"I will read {found[1]}.", "read_file", path=found[1])
    yield Speak(text=f"I have read it. {_gist(outputs)}")


def _find(found: re.Match[str], _sources: Path) -> Task:
    outputs = yield use("Let me search.", "search", pattern=found[1])
    yield Speak(text=f"That is what I found. {_gist(outputs)}")


def _run(found: re.Match[str], _sources: Path) -> Task:
    outputs = yield use("I will run it.", "shell", command=found[1])
    yield Speak(text=f"Done. {_gist(outputs)}")


def _write(found: re.Match[str], _sources: Path) -> Task:
    outputs = yield use(f"I will write {found[1]}.", "write_file", path=found[1], content=f"{found[2]}\n")
    yield Speak(text=outputs[0])


def _plan(found: re.Match[str], _sources: Path) -> Task:
    wanted = [each.strip() for each in found[1].split(",") if each.strip()]
    states = ["doing"] + ["open"] * (len(wanted) - 1)
    items = [{"text": text, "state": state} for text, state in zip(wanted, states, strict=True)]
    outputs = yield use("I will write that down.", "todo", items=items)
    yield Speak(text=f"This is the plan:\n{outputs[0]}")


def _remember(found: re.Match[str], _sources: Path) -> Task:
    outputs = yield use("I will remember that.", "memory", action="add", note=found[1])
    yield Speak(text=f"Noted. {_gist(outputs)}")


def _recall(found: re.Match[str], _sources: Path) -> Task:
    outputs = yield use("Let me look that up.", "lowwater_search", query=found[1])
    yield Speak(text=f"This is what was said earlier:\n{outputs[0][:1_500]}")


def _look_around(_found: re.Match[str], _sources: Path) -> Task:
    files, _ = yield Use(
        text="I will see what is here.",
        calls=(
            Call(tool="search", arguments={"limit": 200}),
            Call(tool="search", arguments={"pattern": "TODO|FIXME", "limit": 20}),
        ),
    )
    readme = next((name for name in files.splitlines() if name.lower().startswith("readme")), "")
    if readme:
        outputs = yield use("There is a README.", "read_file", path=readme, limit=60)
        yield Speak(text=f"I have looked around. {_gist([files])} {_gist(outputs)}")
    else:
        yield Speak(text=f"I have looked around. {_gist([files])} There is no README.")


def _work(found: re.Match[str], sources: Path) -> Task:
    steps, files = min(int(found[1]), _MOST_STEPS), sorted(sources.rglob("*.py"))
    files = [file for file in files if file.stat().st_size > 2_000]
    characters = 0
    for step in range(steps):
        chosen = files[step * 7 % len(files)], files[(step * 7 + 3) % len(files)]
        calls = [
            Call(tool="read_file", arguments={"path": str(file), "limit": _LINES_OF_A_STEP})
            for file in chosen
        ]
        calls.append(
            Call(tool="search", arguments={"pattern": _PATTERNS[step % len(_PATTERNS)], "limit": 20})
        )
        outputs = yield Use(text=f"Step {step + 1} of {steps}.", calls=tuple(calls))
        characters += sum(map(len, outputs))
    yield Speak(text=f"I have worked for {counted(steps, 'step')} and read {characters:,} characters.")


def _count(found: re.Match[str], _sources: Path) -> Task:
    most = min(int(found[1]), _MOST_NUMBERS)
    yield Speak(text=" ".join(str(number) for number in range(1, most + 1)))


def _gist(outputs: Sequence[str]) -> str:
    """Return the first line of a result and its size, as one who has read it would tell."""
    text = outputs[0] if outputs else ""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    return f"It begins with “{first[:100]}” and has {counted(len(text), 'character')}."


_UNDERSTOOD: MappingProxyType[str, Callable[[re.Match[str], Path], Task]] = MappingProxyType(
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
