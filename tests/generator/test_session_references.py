"""Later messages name what earlier ones showed: the ground truth for measuring recall."""

from typing import get_args

import pytest

from lowwater.core.messages import Message, texts_of
from tests.generated import GeneratedSession, Kind, generate_session

KINDS_OF_FACT = {"path", "symbol", "error", "number", "id", "rule"}


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


def test_only_the_user_and_the_model_refer(session: GeneratedSession) -> None:
    assert {session.messages[reference.used].role for reference in session.references} == {
        "user",
        "assistant",
    }


def test_nothing_before_the_first_sight_holds_it(session: GeneratedSession) -> None:
    texts = [text_of(message) for message in session.messages]
    for reference in session.references[:: max(1, len(session.references) // 40)]:
        assert not any(reference.text in text for text in texts[: reference.seen])


def test_references_are_many_and_reach_far_back(session: GeneratedSession) -> None:
    reaches = [reference.used - reference.seen for reference in session.references]
    assert len(reaches) > 0.4 * len(session.usages)
    assert sum(reach > 40 for reach in reaches) > 0.1 * len(reaches)


def test_coding_sessions_refer_to_paths_symbols_errors_numbers_ids_and_rules() -> None:
    session = generate_session("coding", seed=4, turns=400)
    assert {reference.kind for reference in session.references} == KINDS_OF_FACT
