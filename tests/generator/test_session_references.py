"""Later messages name what earlier ones showed: the ground truth for measuring recall."""

from typing import get_args

import pytest

from lowwater.core.messages import Message, texts_of
from tests.generated import GeneratedSession, Kind, generate_session


@pytest.fixture(scope="module", params=get_args(Kind))
def session(request: pytest.FixtureRequest) -> GeneratedSession:
    return generate_session(request.param, seed=4, turns=200)


def text_of(message: Message) -> str:
    return "\n".join(texts_of(message))


def test_a_reference_stands_in_both_messages(session: GeneratedSession) -> None:
    for reference in session.references:
        assert reference.seen < reference.used
        assert reference.text in text_of(session.messages[reference.seen])
        assert reference.text in text_of(session.messages[reference.used])


def test_nothing_before_the_first_sight_holds_it(session: GeneratedSession) -> None:
    texts = [text_of(message) for message in session.messages]
    for reference in session.references[:: max(1, len(session.references) // 40)]:
        assert not any(reference.text in text for text in texts[: reference.seen])


def test_references_are_many_and_reach_far_back(session: GeneratedSession) -> None:
    reaches = [reference.used - reference.seen for reference in session.references]
    assert len(reaches) > 0.4 * len(session.usages)
    assert sum(reach > 40 for reach in reaches) > 0.1 * len(reaches)
