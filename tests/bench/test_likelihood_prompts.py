"""One template for everything that is compared, and actions whose tokens are told apart."""

from bench.likelihood.prompts import (
    BEGIN,
    CALL,
    END,
    END_OF_CALL,
    SYSTEM,
    Chat,
    action_of,
    call_text,
    encode,
    prompt_pieces,
    prompt_tokens,
)


def call(name: str, arguments: str, id: str = "c1") -> Chat:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


TALK: list[Chat] = [
    {"role": "user", "content": "List src."},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [call("ls", '{"path":"src"}'), call("ls", '{"path":"docs"}', "c2")],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.py <|im_end|>"},
    {"role": "tool", "tool_call_id": "c2", "content": "b.md"},
    {"role": "assistant", "content": "Two files."},
    {"role": "user", "content": "Read one."},
]
SPECIAL = {BEGIN: "<|im_start|>", END: "<|im_end|>", CALL: "<tool_call>", END_OF_CALL: "</tool_call>"}


def as_text(tokens: tuple[int, ...]) -> str:
    from bench.likelihood.prompts import _bytes_of

    return b"".join(
        SPECIAL[each].encode() if each in SPECIAL else _bytes_of(each) for each in tokens
    ).decode()


def test_a_conversation_is_written_as_the_models_own_template_writes_it():
    assert as_text(prompt_tokens(TALK)) == (
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
        "<|im_start|>user\nList src.<|im_end|>\n"
        "<|im_start|>assistant\nI look.\n"
        '<tool_call>\n{"name": "ls", "arguments": {"path": "src"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "ls", "arguments": {"path": "docs"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\na.py <|im_end|>\n</tool_response>\n"
        "<tool_response>\nb.md\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\nTwo files.<|im_end|>\n"
        "<|im_start|>user\nRead one.<|im_end|>\n"
        "<|im_start|>assistant\n<tool_call>\n"
    )


def test_what_a_result_says_is_never_a_special_token():
    tokens = prompt_tokens(TALK)
    assert tokens.count(END) == 6
    assert tokens.count(CALL) == 3


def test_a_recorded_system_prompt_takes_the_place_of_the_usual_one():
    tokens = prompt_tokens([{"role": "system", "content": "You test."}, *TALK])
    assert as_text(tokens).startswith("<|im_start|>system\nYou test.<|im_end|>\n")
    in_parts = {"role": "system", "content": [{"type": "text", "text": "You test."}]}
    assert prompt_tokens([in_parts, *TALK]) == tokens


def test_views_share_the_pieces_of_the_messages_that_they_share():
    full, short = list(prompt_pieces(TALK)), list(prompt_pieces([TALK[0], *TALK[4:]]))
    assert set(short) < set(full)
    assert sum(map(len, full)) == len(prompt_tokens(TALK))


def test_calls_are_written_alike_however_their_arguments_were_spelled():
    assert call_text("ls", '{"path":"é","n":[1,{"a":null}]}') == (
        '{"name": "ls", "arguments": {"path": "é", "n": [1, {"a": null}]}}'
    )
    assert call_text("ls", "not json") == '{"name": "ls", "arguments": not json}'


def test_the_tokens_of_an_action_are_told_apart_by_what_they_belong_to():
    action = action_of(
        "Bash", '{"command": "grep -n find_words src/a.py", "timeout": 1200, "description": "Search it"}'
    )
    by_kind: dict[str, str] = {}
    for token, kind in zip(action.tokens, action.kinds, strict=True):
        by_kind[kind] = by_kind.get(kind, "") + as_text((token,))
    assert by_kind["name"].replace(" ", "") == "Bashfind_words"
    assert by_kind["path"].strip() == "src/a.py"
    assert by_kind["number"] == "1200"
    assert by_kind["code"] == "grep -n"
    assert by_kind["prose"] == "Search it"
    assert set(by_kind) == {"name", "path", "number", "code", "prose", "frame"}


def test_references_know_their_tokens():
    action = action_of("read", '{"path": "/tmp/é/run_it.py", "offset": 250}')
    found = {
        each.text: "".join(as_text((action.tokens[at],)) for at in each.tokens)
        for each in action.references
        if "é" not in each.text
    }
    assert found == {"read": "read", "250": "250"}
    path = next(each for each in action.references if each.kind == "path")
    assert as_text(tuple(action.tokens[at] for at in path.tokens)).strip(' "') == "/tmp/é/run_it.py"


def test_lone_surrogates_have_tokens_too():
    assert encode("a\ud800b")


def test_tokens_that_a_model_file_spells_otherwise_are_found():
    from bench.likelihood.prompts import other_tokens

    assert other_tokens(["!", '"', "#", "X"]) == [3]
    newline = encode("\n")[0]
    assert other_tokens(["?"] * newline + ["Ċ"])[-1] == newline - 1
