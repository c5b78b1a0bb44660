"""Long arguments of old calls become digests; the calls stay calls of their tools, and recall has what they really passed."""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lowwater import Lowwater, Session, Settings
from lowwater.core.decisions import Compact
from lowwater.core.mechanisms import call_arguments
from lowwater.core.mechanisms.results import calls_in
from lowwater.core.messages import Format, ToolCall
from lowwater.core.policies.policy import OWN, RUNWAY, SEED
from lowwater.core.proposals import Preset
from lowwater.core.view import Edited, Item, Original, Summary
from lowwater.testing.legality import refusal_of
from lowwater.testing.views import Script, asked, lines, making, offer_of

FORMATS: list[Format] = ["openai_chat", "anthropic", "openai_responses"]
CODE = "\n".join(f"def fetch_row_{at}(path: str) -> Row:\n    return load(path, {at})" for at in range(60))
PATCH = "*** Begin Patch\n*** Update File: src/store.py\n" + "\n".join(
    f"+    keep_row({at})" for at in range(90)
)
SAID = re.compile(
    r"\[[\d,]+ lines, [\d,]+ characters, passed in full; shortened only in this view · .*\blw:\d+"
)


def digested(items: Sequence[Item], preset: Preset = OWN, **zones: Any) -> list[Item]:
    """Carry out what `call_arguments` offers; the first message and the last two are protected."""
    proposal = offer_of(call_arguments.NAME, asked(list(items), preset, **zones))
    return list(items) if proposal is None else call_arguments.apply(items, proposal, making(preset=preset))


def ended(script: Script) -> list[Item]:
    return script.calls("bash", {"command": "ls"}).says("Done.").items()


def only_call(item: Item) -> ToolCall:
    (call,) = item.message.calls
    return call


def with_call(items: list[Item], at: int, call: ToolCall) -> list[Item]:
    """Return the items with another call in one of them, as if it had come so."""
    item = items[at]
    assert not isinstance(item, Summary)
    return [
        *items[:at],
        Original(number=item.number, message=item.message.with_parts([call]), tokens=900),
        *items[at + 1 :],
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_only_the_long_values_of_a_call_change(format: Format) -> None:
    edits = [{"old_string": CODE[:700], "new_string": CODE[700:2000], "replace_all": True}]
    path = "src/" + "deep/" * 200 + "rows.py"
    items = ended(
        Script(format).user("go").calls("multi_edit", {"file_path": path, "edits": edits, "note": "short"})
    )
    after = digested(items)
    assert [new is old for new, old in zip(after, items, strict=True)] == [
        True,
        False,
        True,
        True,
        True,
        True,
    ]
    before, now = only_call(items[1]), only_call(after[1])
    assert (now.id, now.name, now.extra) == (before.id, before.name, before.extra)
    shown = json.loads(now.arguments)
    assert (shown["file_path"], shown["note"], shown["edits"][0]["replace_all"]) == (path, "short", True)
    assert SAID.match(shown["edits"][0]["old_string"])
    assert re.match(r"\[\d+ lines, [\d,]+ characters, also in lw:2 · ", shown["edits"][0]["new_string"])
    assert "fetch_row_1" in shown["edits"][0]["old_string"]
    assert after[1].tokens < items[1].tokens / 2


def test_every_byte_beside_the_long_values_stays() -> None:
    written = '{ "n" : 1.0e2,\t"content":REPLACED , "caf\\u00e9":"\\/", "n":[ 7 ,"x"]}'.replace(
        "REPLACED", json.dumps(CODE)
    )
    items = ended(Script().user("go").calls("write", {"content": "x"}))
    items = with_call(items, 1, replace(only_call(items[1]), arguments=written))
    unnamed = with_call(items, 1, replace(only_call(items[1]), arguments=json.dumps({"": CODE})))
    assert SAID.match(json.loads(only_call(digested(unnamed)[1]).arguments)[""])
    now = only_call(digested(items)[1]).arguments
    start, end = written.index('"def fetch'), written.index(' , "caf')
    assert now.startswith(written[:start])
    assert now.endswith(written[end:])
    assert SAID.match(json.loads(now)["content"])


def test_of_a_command_the_first_line_stays() -> None:
    command = "git commit -F - <<'END'\n" + CODE + "\nEND"
    items = ended(Script().user("go").calls("bash", {"command": command, "timeout": 9}))
    shown = json.loads(only_call(digested(items)[1]).arguments)
    assert shown["timeout"] == 9
    assert shown["command"].startswith("git commit -F - <<'END' [121 lines, ")


@pytest.mark.parametrize(
    ("format", "type"),
    [("openai_chat", "custom"), ("openai_responses", "custom_tool_call")],
    ids=["chat", "responses"],
)
def test_the_free_text_of_a_custom_tool_is_digested_as_a_whole(format: Format, type: str) -> None:
    items = ended(Script(format).user("go").calls("apply_patch", {}))
    call = replace(only_call(items[1]), arguments=PATCH, extra=msgspec.json.encode({"type": type}))
    now = only_call(digested(with_call(items, 1, call))[1])
    assert SAID.match(now.arguments)
    assert "src/store.py" in now.arguments
    assert "keep_row" in now.arguments


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(("apply_patch", PATCH, b""), id="a function whose arguments are no JSON object"),
        pytest.param(
            ("shell", json.dumps({"diff": CODE}), b'{"type":"apply_patch_call"}'),
            id="a tool of the provider's own",
        ),
        pytest.param(("write", json.dumps({"file_path": CODE}), b""), id="what a call is about"),
        pytest.param(("exit_plan", json.dumps({"plan": CODE}), b""), id="what was agreed"),
        pytest.param(("todo", json.dumps({"content": CODE}), b""), id="a tool that is never pruned"),
        pytest.param(("write", json.dumps({"content": CODE[:500]}), b""), id="short"),
        pytest.param(
            ("write", json.dumps({"a": "b " * 100, "c": "d " * 100, "e": "f " * 140}), b""),
            id="many short ones",
        ),
    ],
)
def test_these_arguments_stay(call: tuple[str, str, bytes]) -> None:
    name, written, extra = call
    items = ended(Script().user("go").calls("bash", {}))
    items = with_call(items, 1, replace(only_call(items[1]), name=name, arguments=written, extra=extra))
    assert digested(items) == items


def test_calls_in_head_and_tail_and_calls_without_a_result_stay() -> None:
    write = {"file_path": "a.py", "content": CODE}
    script = (
        Script().user("go").calls("write", write).calls("write", write).asks(("write", write)).user("Wait.")
    )
    items = script.says("Yes.").calls("write", write).items()
    after = digested(items, first=2)
    assert [at for at, (new, old) in enumerate(zip(after, items, strict=True)) if new is not old] == [3]


@pytest.mark.parametrize("preset", [SEED, RUNWAY], ids=["seed", "runway"])
def test_policies_modelled_on_other_systems_leave_arguments_alone(preset: Preset) -> None:
    items = ended(Script().user("go").calls("write", {"content": CODE}))
    assert offer_of(call_arguments.NAME, asked(items, preset)) is None


def test_a_digest_is_not_digested_again_even_by_another_session() -> None:
    content = lines(4_000, "word_in_it")
    items = ended(Script().user("go").calls("write", {"content": content}))
    once = digested(items)
    assert len(only_call(once[1]).arguments) > OWN.elide_limit_chars
    assert offer_of(call_arguments.NAME, asked(once)) is None
    elsewhere: list[Item] = [
        Original(number=at, message=item.message, tokens=item.tokens) for at, item in enumerate(once, start=7)
    ]
    assert offer_of(call_arguments.NAME, asked(elsewhere)) is None


def test_what_is_promised_is_about_what_is_removed() -> None:
    script = Script().user("go")
    for at in range(8):
        script.calls("write", {"file_path": f"part_{at}.py", "content": lines(60 + 30 * at, f"row_{at}")})
    items = ended(script)
    proposal = offer_of(call_arguments.NAME, asked(items))
    assert proposal is not None
    after = call_arguments.apply(items, proposal, making())
    removed = sum(item.tokens for item in items) - sum(item.tokens for item in after)
    assert proposal.removes == pytest.approx(removed, rel=0.15)


def test_a_result_is_still_about_what_its_call_really_passed() -> None:
    items = ended(Script().user("go").calls("write", {"input": PATCH}))
    after = digested(items)
    assert isinstance(after[1], Edited)
    assert calls_in(after) == calls_in(items)


# In sessions


def conversation(format: Format, thinking: str = "") -> Script:
    script = Script(format).user("Store the rows.")
    for at in range(4):
        content = CODE.replace("row", f"row_{at}")
        script.calls(
            "write", {"file_path": f"src/part_{at}.py", "content": content}, lines(9), thinking=thinking
        )
    return script.user("And now?")


def opened(script: Script, model: str) -> Session:
    settings = Settings(protect_last_n=2, protect_first_n=1)
    session = Lowwater(model=model, store="memory:", settings=settings).session("rows")
    session.append([msgspec.json.decode(message.wire.raw) for message in script.messages() if message.wire])
    return session


def sent(session: Session, format: Format) -> dict[str, Any]:
    tools: list[dict[str, Any]] = [{"name": "write", "input_schema": {"type": "object"}}]
    if format == "openai_chat":
        return {"model": "gpt-4o", **session.prepare().as_openai()}
    if format == "openai_responses":
        return {"model": "gpt-4o", **session.prepare().as_responses()}
    return {"model": "claude-haiku-4-5", "max_tokens": 9, **session.prepare(tools=tools).as_anthropic()}


@pytest.mark.parametrize("format", FORMATS)
def test_the_default_policy_buys_it_and_every_provider_accepts_the_request(format: Format) -> None:
    session = opened(conversation(format), "claude-haiku-4-5" if format == "anthropic" else "gpt-4o")
    body = sent(session, format)
    assert refusal_of(body, format) is None
    assert json.dumps(body, ensure_ascii=False).count("shortened only in this view") == 3
    assert [json.dumps(body).count(f"src/part_{at}.py") for at in range(4)] == [1, 1, 1, 1]
    decision = session.status().decision
    assert isinstance(decision, Compact)
    assert call_arguments.NAME in [each.mechanism for each in decision.proposals]
    assert "long texts that old calls passed" in str(session.explain())


def test_recall_has_what_the_call_really_passed() -> None:
    session = opened(conversation("openai_chat"), "gpt-4o")
    body = json.dumps(sent(session, "openai_chat"), ensure_ascii=False)
    handles = re.findall(r"shortened only in this view · [^\[\]]*?lw:(\d+)", body)
    assert handles == ["2", "4", "6"], "the last call is in the protected tail"
    for at, handle in enumerate(handles):
        (found,) = session.recall(f"lw:{handle}")
        (call,) = found.message.calls
        assert json.loads(call.arguments)["content"] == CODE.replace("row", f"row_{at}")


def test_thinking_that_its_model_binds_does_not_stay_behind_a_changed_call() -> None:
    session = opened(conversation("anthropic", thinking="Hm."), "claude-opus-5-5")
    body = sent(session, "anthropic")
    blocks = [
        block for message in body["messages"] for block in message["content"] if isinstance(block, dict)
    ]
    assert any("shortened only" in json.dumps(block, ensure_ascii=False) for block in blocks)
    assert not [block for block in blocks if block["type"] == "thinking"]
    assert refusal_of(body | {"model": "claude-opus-5-5"}, "anthropic") is None
