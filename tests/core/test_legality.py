"""What is sent is legal: every call directly followed by its result, every result called for (specification C4)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.legality import LEFT_OUT, STUB, begin_with_user, made_legal, mend, refuse_illegal
from lowwater.core.messages import Format, Message, Text, ToolCall, ToolResult
from lowwater.errors import IllegalView
from lowwater.testing.legality import refusal_of
from lowwater.testing.strategies import conversations, transcripts
from lowwater.testing.views import Script

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
FORMATS: list[Format] = ["openai_chat", "anthropic", "openai_responses"]
REFUSED: dict[Format, str] = {
    "openai_chat": "tool_call",
    "anthropic": "tool_use",
    "openai_responses": "function call",
}

DOUBLED: dict[Format, str] = {
    "openai_chat": "Duplicate value",
    "anthropic": "must be unique",
    "openai_responses": "function call",
}


def results(messages: list[Message]) -> list[list[str]]:
    return [[result.text for result in message.results] for message in messages]


@pytest.mark.parametrize("format", FORMATS)
def test_c4_messages_in_order_pass_untouched(format: Format) -> None:
    @given(transcripts(format))
    def check(raws: list[bytes]) -> None:
        messages = decode_messages(raws, format)
        mended = mend(messages)
        assert all(new is old for new, old in zip(mended, messages, strict=True))
        refuse_illegal(mended)
        assert made_legal(messages) == messages

    check()


def has(rule: str, messages: list[Message], format: Format) -> bool:
    """Return whether the rules-checking provider refuses the messages with these words."""
    if format == "openai_responses":
        items = [json.loads(raw) for raw in encode_messages(messages, format)]
        return rule in str(refusal_of({"model": "gpt-6.1-sol", "input": items}, format))
    body = {
        "model": "claude-sonnet-4-5" if format == "anthropic" else "gpt-6.1-sol",
        "max_tokens": 100,
        "messages": [json.loads(raw) for raw in encode_messages(messages, format)],
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}] if format == "anthropic" else TOOLS,
    }
    return rule in str(refusal_of(body, format))


@pytest.mark.parametrize("format", FORMATS)
def test_c4_whatever_is_missing_what_is_sent_is_legal(format: Format) -> None:
    @given(conversations(), st.data())
    def check(told: list[Message], data: st.DataObject) -> None:
        hi = Script(format).user("hi").messages()
        messages = decode_messages(encode_messages(told, format), format)
        gone = data.draw(st.sets(st.sampled_from(range(len(messages)))))
        left = [*hi, *(message for at, message in enumerate(messages) if at not in gone), *hi]
        mended = mend(left)
        refuse_illegal(mended)
        assert made_legal(left) == mended
        assert mend(mended) == mended, "mending twice is mending once"
        assert not has("tool_use", mended, format)
        assert not has("tool_call", mended, format)
        assert not has(REFUSED[format], mended, format)

    check()


@pytest.mark.parametrize("format", FORMATS)
def test_the_provider_would_refuse_what_is_mended(format: Format) -> None:
    broken = Script(format).user("go").asks(("bash", {})).user("Wait.").messages()
    assert has(REFUSED[format], broken, format)
    assert not has(REFUSED[format], mend(broken), format)


@pytest.mark.parametrize("format", FORMATS)
def test_c4_results_without_a_call_are_dropped_and_the_rest_of_their_message_stays(format: Format) -> None:
    whole = Script(format).user("go").calls("bash", {}, "out").user("Thanks.").messages()
    left = mend([whole[0], *whole[2:]])
    assert results(left) == [[]] * len(left)
    texts = [part.text for message in left for part in message.parts if isinstance(part, Text)]
    assert texts == ["go", "Thanks."]
    # In the Anthropic format the client sent three user messages in a row, in the others a tool stood between two.
    assert len(left) == (2 if format == "anthropic" else 1)


@pytest.mark.parametrize("format", FORMATS)
def test_c4_dropping_a_result_leaves_no_two_answers_in_a_row(format: Format) -> None:
    left = mend(Script(format).user("go").says("One.").answers("call_9", "out").says("Two.").messages())
    assert [message.role for message in left] == ["user", "assistant", "user", "assistant"]
    assert left[2].text == LEFT_OUT


def test_an_anthropic_list_that_an_orphan_leaves_to_the_assistant_is_begun_by_the_user() -> None:
    whole = Script("anthropic").calls("bash", {}, "out").says("Done.").user("Thanks.").messages()
    left = mend(whole[1:])
    assert [message.role for message in left] == ["assistant", "user"]
    begun = begin_with_user(left)
    assert [message.role for message in begun] == ["user", "assistant", "user"]
    assert begun[1:] == left
    assert begin_with_user(begun) == begun
    assert has("first message", left, "anthropic")
    assert not has("first message", begun, "anthropic")


def test_c4_a_call_without_a_result_gets_a_stub_right_behind_it_in_chat() -> None:
    whole = Script().user("go").asks(("bash", {})).user("Wait.").says("Yes?").messages()
    mended = mend(whole)
    assert [message.role for message in mended] == ["user", "assistant", "tool", "user", "assistant"]
    assert results(mended)[2] == [STUB]
    assert mended[2].results[0].is_error
    assert mended[1] is whole[1]


def test_c4_a_call_without_a_result_gets_a_stub_right_behind_it_for_anthropic() -> None:
    whole = Script("anthropic").user("go").asks(("bash", {})).user("Wait.").says("Yes?").messages()
    mended = mend(whole)
    assert [message.role for message in mended] == ["user", "assistant", "user", "assistant"]
    assert results(mended)[2] == [STUB]
    assert mended[2].text == "Wait."


@pytest.mark.parametrize("format", FORMATS)
def test_c4_of_parallel_calls_only_the_open_ones_get_a_stub(format: Format) -> None:
    script = Script(format).user("go").asks(("bash", {}), ("bash", {}), ("bash", {}))
    mended = mend(script.answers("call_2", "two").user("Wait.").messages())
    refuse_illegal(mended)
    answered = {result.call_id: result.text for message in mended for result in message.results}
    assert answered == {"call_1": STUB, "call_2": "two", "call_3": STUB}
    assert mended[-1].text == "Wait."
    if format == "anthropic":
        assert [part.kind for part in mended[2].parts] == ["tool_result"] * 3 + ["text"]


@pytest.mark.parametrize("format", FORMATS)
def test_c4_the_newest_calls_are_answered_too_for_they_are_about_to_be_sent(format: Format) -> None:
    mended = mend(Script(format).user("go").asks(("bash", {})).messages())
    assert results(mended) == [[], [], [STUB]]


def test_c4_a_late_result_is_brought_to_its_call() -> None:
    script = Script().user("go").asks(("bash", {})).user("Any news?").answers("call_1", "late").says("Done.")
    mended = mend(script.messages())
    assert [message.role for message in mended] == ["user", "assistant", "tool", "user", "assistant"]
    assert results(mended)[2] == ["late"]


def test_c4_a_second_result_of_the_same_call_is_dropped() -> None:
    script = Script().user("go").asks(("bash", {})).answers("call_1", "first").answers("call_1", "second")
    assert results(mend(script.messages())) == [[], [], ["first"]]


def test_c4_an_id_that_a_later_call_uses_again_belongs_to_both() -> None:
    again = Script().user("go").asks(("bash", {})).answers("call_1", "one").messages()
    messages = [*again, *again[1:]]
    assert mend(messages) == messages
    open_first = mend([again[0], again[1], *again[1:]])
    assert results(open_first) == [[], [], [STUB], [], ["one"]]


def doubled(format: Format, *texts: str) -> list[Message]:
    """Return a conversation in which the model gave two calls one id, with these results."""
    script = Script(format).user("go").asks(("bash", {"command": "ls"}), ("bash", {"command": "pwd"}))
    for text in texts:
        script.answers("call_1", text)
    raws = [raw.replace(b"call_2", b"call_1") for raw in encode_messages(script.messages(), format)]
    return decode_messages(raws, format)


@pytest.mark.parametrize("format", FORMATS)
def test_c4_calls_that_share_an_id_get_ids_of_their_own_and_the_results_follow_in_order(
    format: Format,
) -> None:
    messages = doubled(format, "first", "second")
    assert has(DOUBLED[format], messages, format) or format == "openai_responses"
    mended = mend(messages)
    refuse_illegal(mended)
    assert [call.id for call in mended[1].calls] == ["call_1", "call_1-2"]
    answered = {result.call_id: result.text for message in mended for result in message.results}
    assert answered == {"call_1": "first", "call_1-2": "second"}
    assert not has(REFUSED[format], mended, format)
    assert not has(DOUBLED[format], mended, format)
    again = decode_messages(encode_messages(mended, format), format)
    assert [message.parts for message in again if message.calls] == [mended[1].parts]
    assert {result.call_id for message in again for result in message.results} == set(answered)


@pytest.mark.parametrize("format", FORMATS)
def test_c4_a_client_that_keeps_one_result_per_id_gets_a_stub_for_the_other_call(format: Format) -> None:
    mended = mend(doubled(format, "only"))
    refuse_illegal(mended)
    answered = {result.call_id: result.text for message in mended for result in message.results}
    assert answered == {"call_1": "only", "call_1-2": STUB}


def test_c4_an_id_from_an_earlier_message_is_replaced_only_where_the_provider_refuses_it() -> None:
    for format in FORMATS:
        again = Script(format).user("go").asks(("bash", {})).answers("call_1", "one").messages()
        messages = [*again, *again[1:]]
        ids = [call.id for message in mend(messages) for call in message.calls]
        assert ids == (["call_1", "call_1-2"] if format == "anthropic" else ["call_1", "call_1"])


@pytest.mark.parametrize("format", FORMATS)
def test_c4_new_ids_do_not_depend_on_what_comes_later(format: Format) -> None:
    @given(
        st.lists(st.lists(st.sampled_from(["a", "a-2", "b"]), min_size=1, max_size=4), min_size=1, max_size=5)
    )
    def check(asked: list[list[str]]) -> None:
        wired = Script(format).user("go").messages()
        messages = list(wired)
        for ids in asked:
            calls = tuple(ToolCall(id=id, name="bash", arguments="{}") for id in ids)
            results = tuple(ToolResult(call_id=id, parts=(Text(text=f"{at}"),)) for at, id in enumerate(ids))
            messages += [
                Message(role="assistant", parts=calls),
                Message(role="user" if format == "anthropic" else "tool", parts=results),
            ]
        mended = mend(messages)
        refuse_illegal(mended)
        assert mend(mended) == mended
        for end in range(1, len(messages) + 1, 2):
            assert mend(messages[:end]) == mended[:end]
        for calling, answering in zip(mended[1::2], mended[2::2], strict=True):
            assert [call.id for call in calling.calls] == [result.call_id for result in answering.results]

    check()


def test_c4_stubs_leave_in_the_format_of_the_conversation_even_if_the_call_has_no_bytes() -> None:
    script = Script("anthropic").user("go").messages()
    call = Message(role="assistant", parts=(ToolCall(id="1", name="bash", arguments="{}"),))
    assert mend([*script, call])[-1].role == "user"


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "empty"),
        (Script().system("Be brief.").messages(), "only instructions"),
        (Script().user("go").asks(("bash", {})).messages(), "'call_1', whose result does not"),
        (Script().user("go").answers("call_9").messages(), "'call_9', which the message before"),
        (
            [
                *Script().user("go").messages(),
                Message(
                    role="assistant", parts=tuple(ToolCall(id="1", name="t", arguments="{}") for _ in "ab")
                ),
                Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text="x"),)),)),
            ],
            "same id",
        ),
    ],
    ids=["empty", "instructions", "open call", "orphan", "id twice"],
)
def test_c4_what_is_illegal_is_refused_with_what_to_change(messages: list[Message], said: str) -> None:
    with pytest.raises(IllegalView, match=said):
        refuse_illegal(messages)
    if said in {"empty", "only instructions"}:
        with pytest.raises(IllegalView, match=said):
            made_legal(messages)
    else:
        refuse_illegal(made_legal(messages))
