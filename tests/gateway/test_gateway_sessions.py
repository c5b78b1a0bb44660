"""Which session a stateless request belongs to: by content, within a tenant, told apart by hints."""

from base64 import urlsafe_b64encode
from typing import Any

import msgspec

from lowwater.gateway.tenants import tenant_of
from lowwater.testing.provider import Say, Seen
from tests.gateway.conftest import MODEL, Starting, Through

USER = {"role": "user", "content": "hello there"}


def ask(through: Through, messages: list[Any], *, system: str = "s", **headers: str) -> dict[str, Any]:
    answer = through.post(
        {"model": MODEL, "max_tokens": 9, "system": system, "messages": messages}, **headers
    )
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = {"role": "assistant", "content": answer.json()["content"]}
    return reply


def numbered(seen: Seen) -> Say:
    return Say(
        text=f"answer to {len(seen.body['messages'])} messages of {seen.headers.get('x-session-id', '-')}"
    )


def shape(through: Through) -> list[tuple[int, int]]:
    """Return turns and messages of each session, the largest first."""
    return sorted(((each.turns, each.messages) for each in through.store.sessions()), reverse=True)


def test_turns_of_one_conversation_are_one_session(start: Starting) -> None:
    through = start(numbered)
    messages: list[Any] = [USER]
    for turn in range(4):
        messages += [ask(through, messages), {"role": "user", "content": f"more {turn}"}]
    assert shape(through) == [(4, 8)]


def test_a_client_that_writes_its_list_anew_is_known_again(start: Starting) -> None:
    through = start(numbered)
    answer = ask(through, [USER])
    rewritten = [
        {
            "content": [{"text": "hello there", "type": "text", "cache_control": {"type": "ephemeral"}}],
            "role": "user",
        },
        {"role": "assistant", "content": answer["content"][0]["text"]},
        {"role": "user", "content": "next"},
    ]
    ask(through, rewritten)
    assert shape(through) == [(2, 4)]


def test_two_tenants_never_share_a_session(start: Starting) -> None:
    through = start(numbered)
    for key in ("sk-one", "sk-two"):
        answer = ask(through, [USER], x_api_key=key, x_session_id="the-same")
        ask(through, [USER, answer, {"role": "user", "content": "x"}], x_api_key=key, x_session_id="the-same")
    assert shape(through) == [(2, 4), (2, 4)]
    sources = {each.about.source for each in through.store.sessions()}
    assert len(sources) == 2


def test_another_tenant_cannot_go_on_with_a_conversation_it_knows_word_for_word(start: Starting) -> None:
    through = start(numbered)
    answer = ask(through, [USER], x_api_key="sk-one")
    ask(through, [USER, answer, {"role": "user", "content": "x"}], x_api_key="sk-two")
    assert shape(through) == [(1, 4), (1, 2)]


def test_the_operator_may_make_all_clients_one_tenant(start: Starting) -> None:
    through = start(numbered, tenant="me")
    answer = ask(through, [USER], x_api_key="sk-one")
    ask(through, [USER, answer, {"role": "user", "content": "x"}], x_api_key="sk-two")
    assert shape(through) == [(2, 4)]


def token(account: str, *, expires: int) -> str:
    """Return a JSON Web Token as providers issue them, with a signature that nobody here can check."""
    pieces = [
        {"alg": "RS256"},
        {"iss": "https://auth.openai.com", "sub": account, "exp": expires},
        {"signature": expires},
    ]
    return ".".join(urlsafe_b64encode(msgspec.json.encode(piece)).decode().rstrip("=") for piece in pieces)


def test_a_refreshed_token_is_the_same_tenant_where_somebody_checks_tokens(start: Starting) -> None:
    through = start(numbered, trusts_tokens=True)
    answer = ask(through, [USER], x_api_key="", authorization=f"Bearer {token('ann', expires=1)}")
    ask(
        through,
        [USER, answer, {"role": "user", "content": "x"}],
        x_api_key="",
        authorization=f"Bearer {token('ann', expires=2)}",
    )
    assert shape(through) == [(2, 4)]
    ask(
        through,
        [USER, answer, {"role": "user", "content": "x"}],
        x_api_key="",
        authorization=f"Bearer {token('bob', expires=2)}",
    )
    assert shape(through) == [(2, 4), (1, 4)]


def test_two_conversations_with_the_same_beginning_are_two_sessions(start: Starting) -> None:
    answers = iter(f"reply {number}" for number in range(9))
    through = start(lambda _: Say(text=next(answers)))
    one = [USER, ask(through, [USER])]
    two = [USER, ask(through, [USER])]
    one = [*one, {"role": "user", "content": "left"}]
    two = [*two, {"role": "user", "content": "right"}]
    one.append(ask(through, one))
    two.append(ask(through, two))
    ask(through, [*one, {"role": "user", "content": "left again"}])
    ask(through, [*two, {"role": "user", "content": "right again"}])
    assert shape(through) == [(3, 6), (3, 6)]
    texts = [
        [message.text for message in _history(through, session.name)] for session in through.store.sessions()
    ]
    assert all(("left" in text) != ("right" in text) for text in texts)


def _history(through: Through, name: str) -> list[Any]:
    version = through.store.outline(name).version
    return [one.message for one in through.store.messages(name, 1, 1_000, version=version)]


def test_a_conversation_that_branches_off_is_a_fork_that_knows_where_it_came_from(start: Starting) -> None:
    through = start(numbered)
    messages: list[Any] = [USER]
    for turn in range(4):
        messages += [ask(through, messages), {"role": "user", "content": f"more {turn}"}]
    ask(through, [*messages[:4], {"role": "user", "content": "instead"}])
    (fork,) = [each for each in through.store.sessions() if each.about.parent]
    assert fork.about.parent in {each.name for each in through.store.sessions()}
    ask(through, messages)
    assert len(through.store.sessions()) == 2, "the conversation itself goes on where it was"


def test_a_client_that_says_it_is_the_same_session_goes_back_in_it(start: Starting) -> None:
    through = start(numbered)
    messages: list[Any] = [USER]
    for turn in range(3):
        messages += [ask(through, messages, x_session_id="a"), {"role": "user", "content": f"more {turn}"}]
    ask(through, [*messages[:2], {"role": "user", "content": "instead"}], x_session_id="a")
    assert len(through.store.sessions()) == 1


def test_hints_keep_conversations_apart_that_say_the_same(start: Starting) -> None:
    through = start(lambda _: Say(text="always the same"))
    for name in ("a", "b"):
        messages: list[Any] = [USER]
        for _ in range(3):
            messages += [ask(through, messages, x_session_id=name), {"role": "user", "content": "more"}]
    assert shape(through) == [(3, 6), (3, 6)]


def test_a_sub_agent_with_the_same_words_is_a_session_of_its_own(start: Starting) -> None:
    through = start(lambda _: Say(text="always the same"))
    ask(through, [USER], system="You are the orchestrator.", x_claude_code_session_id="s")
    ask(through, [USER], system="You are the explorer.", x_claude_code_session_id="s")
    assert shape(through) == [(1, 2), (1, 2)]


def test_a_request_that_is_sent_again_is_no_new_session(start: Starting) -> None:
    through = start(numbered)
    messages: list[Any] = [USER]
    for turn in range(2):
        messages += [ask(through, messages), {"role": "user", "content": f"more {turn}"}]
    ask(through, messages)
    ask(through, messages)
    assert len(through.store.sessions()) == 1


def test_requests_without_a_credential_are_one_tenant_of_their_own() -> None:
    secret = b"k" * 32
    nobody = tenant_of({}, secret=secret)
    assert nobody == tenant_of({"x-api-key": "", "authorization": " "}, secret=secret)
    assert nobody != tenant_of({"x-api-key": "sk-one"}, secret=secret)
