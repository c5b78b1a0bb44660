"""Is the summary any good? (specification J)"""

import pytest

from lowwater.core.summary.critical import critical_references, missing_from
from lowwater.core.summary.defects import is_refusal
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import Critical, Written
from lowwater.core.summary.template import Section, parse
from lowwater.core.summary.validation import best, repair, validate

LONG = " The work on the uploader went well and everything that was planned for this part of it has been finished by now."


def written(text, **more):
    return Written(text=text, by="test", **more)


@pytest.fixture
def request_(talk):
    talk.user("Add a retry with backoff to the uploader. Never change the public signature.")
    talk.calls("Read", {"file_path": "/repo/src/upload.py"}, "x = 12345678")
    talk.runs(
        "pytest",
        "E   ConnectionResetError: [Errno 104] Connection reset by peer\n1 failed in 0.1s",
        failed=True,
    )
    talk.says("The bug is in `send_chunk`, ticket ENG-481, with a limit of 4096 bytes.")
    return talk.request()


def test_critical_are_asks_prohibitions_errors_and_what_the_assistant_named(request_):
    found = {(reference.kind, reference.text) for reference in critical_references(request_)}
    assert found == {
        ("ask", "Add a retry with backoff to the uploader. Never change the public signature."),
        ("forbidden", "Never change the public signature."),
        ("error", "E ConnectionResetError: [Errno 104] Connection reset by peer"),
        ("path", "/repo/src/upload.py"),
        ("identifier", "send_chunk"),
        ("identifier", "ENG-481"),
        ("value", "4096"),
    }


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("see /repo/src/upload.py", True),
        ("below /repo/src there is upload.py", True),
        ("Paths are relative to /repo. src/upload.py", True),
        ("see upload.py", False),
        ("see /repo/src/upload.pyc and /repo/src", False),
    ],
    ids=["whole", "directory apart", "root apart", "name only", "longer name"],
)
def test_a_path_is_kept_whole_or_as_directory_and_rest(text, kept):
    path = Critical(kind="path", text="/repo/src/upload.py")
    assert missing_from(text, [path]) == (() if kept else (path,))


def test_an_ask_is_kept_by_its_key_words_not_verbatim(request_):
    ask = [reference for reference in critical_references(request_) if reference.kind == "ask"]
    assert ask
    told = "Goal: the uploader shall retry with backoff; its public signature must not change."
    assert not missing_from(told, ask)
    assert missing_from("Goal: tidy up the uploader.", ask) == tuple(ask)


def test_a_good_summary_is_accepted_with_its_numbers(request_, tokenizer):
    text = extract(request_, tokenizer)
    verdict = validate(written(text), request_, tokenizer, 5_000)
    assert verdict.accepted
    assert verdict.score == 1.0
    assert verdict.because.code == "accepted"
    assert verdict.because.facts == {
        "characters": len(text),
        "tokens": tokenizer.count(text),
        "replaced_tokens": 5_000,
        "references": 7,
        "kept": 7,
        "named": 8,
        "invented": 0,
    }


@pytest.mark.parametrize(
    ("summary", "replaced", "code"),
    [
        (written("Uploader done."), 5_000, "too_short"),
        (written("I'm sorry, but I can't help with summarising this conversation. " * 3), 5_000, "refusal"),
        (written(LONG * 3, cut_off=True), 5_000, "cut_off"),
        (written(LONG * 30), 500, "not_smaller"),
        (written(LONG * 3), 5_000, "references_missing"),
    ],
    ids=[
        "under 100 characters",
        "refusal",
        "cut off by length",
        "larger than what it replaces",
        "more than half missing",
    ],
)
def test_what_is_no_summary_is_not_accepted(request_, tokenizer, summary, replaced, code):
    verdict = validate(summary, request_, tokenizer, replaced)
    assert not verdict.accepted
    assert verdict.because.code == code


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "I cannot help with this.",
        "Sorry, I am unable to summarise this conversation.",
        "As an AI language model, I cannot read files.",
        "Unfortunately, I won't be able to do that.",
        "## Summary\nI apologize, but I can't continue with this.",
        "I’m not able to provide a summary.",
        "抱歉，我无法协助处理这个请求。",
        "申し訳ありませんが、要約できません。",
    ],
    ids=[
        "can't assist",
        "cannot help",
        "unable",
        "as an AI",
        "unfortunately",
        "under a heading",
        "curly",
        "Chinese",
        "Japanese",
    ],
)
def test_refusals_are_known_in_many_wordings(text):
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "## Goal\n- First asked: \"I'm sorry, I can't log in any more; fix it\"",
        "## Progress\n### Blocked\n- The server says it cannot assist with this request.",
        LONG * 8 + "The API answered: I cannot help with that.",
    ],
    ids=["a user who is sorry", "an error message", "a quoted answer far down"],
)
def test_a_summary_that_quotes_a_refusal_is_none(text):
    assert not is_refusal(text)


def test_repair_appends_what_is_missing(request_, tokenizer):
    poor = written(f"## Goal\n- {LONG * 2}")
    verdict = validate(poor, request_, tokenizer, 5_000)
    mended = repair(poor.text, verdict.missing, 1_000, tokenizer)
    assert mended.startswith(poor.text)
    assert missing_from(mended, critical_references(request_)) == ()
    assert parse(mended).of(Section.CONSTRAINTS) == ('"Never change the public signature."',)
    assert validate(written(mended), request_, tokenizer, 5_000).accepted


@pytest.mark.parametrize("room", range(0, 80, 7))
def test_repair_stays_within_its_budget(request_, tokenizer, room):
    poor = f"## Goal\n- {LONG}"
    budget = tokenizer.count(poor) + room
    mended = repair(poor, critical_references(request_), budget, tokenizer)
    assert tokenizer.count(mended) <= budget
    assert mended.startswith(poor)


def test_the_best_by_this_measure_wins(request_, tokenizer):
    good = written(extract(request_, tokenizer))
    better_but_cut = written(good.text, cut_off=True)
    found = best([written(LONG * 3), better_but_cut, good, written("short")], request_, tokenizer, 5_000)
    assert found is not None
    assert found.written == good
    assert found.verdict.accepted
    assert best([], request_, tokenizer, 5_000) is None


def test_of_equal_summaries_the_shorter_wins(request_, tokenizer):
    text = extract(request_, tokenizer)
    found = best([written(text + "\n" + LONG), written(text)], request_, tokenizer, 5_000)
    assert found is not None
    assert found.written.text == text


def test_constraints_and_files_of_the_previous_summary_are_critical_too(talk, tokenizer):
    previous = "## Constraints & Preferences\n- Never push to main.\n\n## Relevant Files\n- `src/deep/thing.py` · edited"
    request = talk.says("All fine.").request(previous=previous)
    assert [(r.kind, r.text) for r in critical_references(request)] == [
        ("forbidden", "Never push to main."),
        ("path", "src/deep/thing.py"),
    ]
