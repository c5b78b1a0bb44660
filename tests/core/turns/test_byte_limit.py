"""A provider's byte limit: images are many bytes and few tokens, and a request may be refused for them alone."""

from typing import Any

import pytest

from lowwater.core.policies.registry import POLICIES
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

MODEL, LIMIT = "qwen3.8-max", 6_291_456
NOISE = "iVBORw0KGgo" + "A" * 600_000


def with_images(policy: str, count: int, *, last: str = "What do you see?") -> Session:
    session = Lowwater(model=MODEL, policy=policy).session()
    for number in range(count):
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{NOISE}{number:04}"}}
        session.append({"role": "user", "content": [{"type": "text", "text": f"step {number}"}, picture]})
        session.append({"role": "assistant", "content": f"seen {number}"})
        for more in range(5):
            session.append({"role": "user", "content": f"and {more}?"})
            session.append({"role": "assistant", "content": "yes"})
    session.append({"role": "user", "content": last})
    return session


def size(request: Any) -> int:
    return len(str(request.as_openai()["messages"]))


@pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])
def test_what_is_too_large_in_bytes_is_made_to_fit_whatever_its_tokens(policy: str) -> None:
    session = with_images(policy, 14)
    request = session.prepare()
    assert size(request) < LIMIT
    assert request.decision is not None
    assert internals(session).last_compaction is not None


def test_images_go_first_and_nothing_else() -> None:
    session = with_images("never", 14)
    session.prepare()
    event = internals(session).last_compaction
    assert event is not None
    assert event.because.code == "byte-limit"
    assert event.mechanisms == ("images",)


def test_below_the_limit_it_is_no_reason() -> None:
    session = with_images("never", 9)
    assert size(session.prepare()) < LIMIT
    assert internals(session).last_compaction is None
