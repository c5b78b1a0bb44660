"""What becomes of a provider's block before it may stand: it is judged like a summary, and cannot be mended."""

import json
from typing import Any

import pytest

from lowwater.core.api_calls import Usage
from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.turns.effects import Failure, Summarize
from lowwater.core.turns.state import Ladder
from lowwater.core.turns.summaries import Need, ObtainedSummary, ask_for_block, need_for
from lowwater.testing.fakes import WordTokenizer
from lowwater.testing.views import Script, size

GOOD = (
    "## Goal\n- Find out why tests/test_flow.py fails with ValueError: no such flow.\n"
    "## Constraints & Preferences\n- Never touch src/core/engine.py.\n## Relevant Files\n- src/flow.py, src/core/engine.py"
)
USAGE = Usage(cache_read=900, output=60)


def need(*, max_tokens: int = 200, redact: bool = True) -> Need:
    script = Script("anthropic").user(
        "Find out why tests/test_flow.py fails with ValueError: no such flow. Never touch src/core/engine.py."
    )
    for step in range(8):
        script.calls(
            "bash",
            {"command": f"cat src/flow.py {step}"},
            f"line {step} of src/flow.py " * 30,
        )
    messages = tuple(script.messages())
    request = SummaryRequest(messages=messages, max_tokens=max_tokens, redact=redact)
    replaces = sum(size(message) for message in messages)
    return need_for(request, replaces=replaces, tokenizer=WordTokenizer(), must=False)


def block_of(said: object, **fields: object) -> bytes:
    return json.dumps({"type": "compaction", "content": said, "signature": "c2lnbmVk", **fields}).encode()


def written(text: str = GOOD, block: bytes | None = None) -> Written:
    return Written(
        text=text, by="claude", model="claude", usage=USAGE, block=block_of(text) if block is None else block
    )


def obtained(outcome: Any, wanted: Need | None = None) -> ObtainedSummary:
    steps = ask_for_block(
        wanted or need(), Ladder(rungs=2, native=1, names=("other", "claude")), upto=9, size=size
    )
    effect = next(steps)
    assert isinstance(effect, Summarize)
    assert (effect.rung, effect.upto, effect.request.native) == (1, 9, True)
    assert effect.share < 0.5, "those behind it want some time too"
    with pytest.raises(StopIteration) as done:
        steps.send(outcome)
    result: ObtainedSummary = done.value.value
    return result


def test_a_good_block_is_taken_as_it_came() -> None:
    assert critical_references(need().request), "there is something to lose"
    result = obtained(written())
    assert result.judged is not None
    assert result.judged.written.block == block_of(GOOD)
    assert (result.written, result.rejected, result.lost) == ((written(),), (), False)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(written(block=b""), "no_block", id="none at all"),
        pytest.param(written(block=b"\xff"), "no_block", id="not text"),
        pytest.param(written(block=b"{}"), "no_block", id="something else"),
        pytest.param(written(block=block_of(None)), "no_block", id="a compaction that failed"),
        pytest.param(written(block=block_of("Other words.")), "no_block", id="that says something else"),
        pytest.param(written(block=block_of(GOOD, signature="")), "unsigned", id="unsigned"),
        pytest.param(
            written("Much was done, and more remains. " * 5), "references_missing", id="lost too much"
        ),
        pytest.param(written("Short."), "too_short", id="a stump"),
        pytest.param(
            written("I'm sorry, but I cannot help with that. " * 4), "refusal", id="a refusal in words"
        ),
        pytest.param(written(f"{GOOD}\n{'word ' * 400}"), "too_long", id="too long"),
        pytest.param(written(f"{GOOD}\n{'word ' * 9_000}"), "not_smaller", id="larger than what it replaces"),
        pytest.param(
            written(f"{GOOD}\nkey ghp_{'A1b2' * 9}"),
            "holds_secrets",
            id="with a secret that cannot be taken out",
        ),
    ],
)
def test_a_block_that_is_wrong_is_refused_and_was_billed(answer: Written, code: str) -> None:
    result = obtained(answer)
    assert result.judged is None
    assert [each.code for each in result.rejected] == [code]
    assert result.written == (answer,)
    assert not result.lost


def test_where_nothing_is_kept_secret_a_block_may_tell_all() -> None:
    answer = written(f"{GOOD}\nkey ghp_{'A1b2' * 9}")
    assert obtained(answer, need(redact=False)).judged is not None


@pytest.mark.parametrize(
    ("failure", "billed", "lost"),
    [
        (Failure(kind="failed", error="it called a tool", usage=USAGE, at=7.0), True, False),
        (Failure(kind="timeout", error="no answer in time", at=7.0), False, True),
        (Failure(kind="auth", error="no access", at=7.0), False, False),
    ],
    ids=["billed", "nobody knows", "never billed"],
)
def test_a_failure_costs_what_is_known_of_it(failure: Failure, billed: bool, lost: bool) -> None:
    result = obtained(failure)
    assert result.judged is None
    assert result.failed_at == 7.0
    assert [each.usage for each in result.written] == ([USAGE] if billed else [])
    assert result.lost is lost
    assert result.rejected[0].error == failure.error
