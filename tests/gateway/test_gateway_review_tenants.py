"""What one tenant does never reaches another, whatever it claims and whatever it makes a provider say."""

from base64 import urlsafe_b64encode
from functools import partial
from typing import Any

import httpx2
import msgspec
import pytest

from lowwater.gateway.tenants import tenant_of
from lowwater.testing.provider import Answer, Fail, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, calls_a_tool, working
from tests.gateway.test_gateway_sessions import USER, ask, numbered, shape, token

SECRET = b"k" * 32


def test_a_forged_token_beside_a_key_of_ones_own_leads_to_nobodys_sessions(start: Starting) -> None:
    through = start(numbered, trusts_tokens=True)
    answer = ask(through, [USER], x_api_key="", authorization=f"Bearer {token('ann', expires=1)}")
    listed = [USER, answer, {"role": "user", "content": "x"}]
    ask(through, listed, x_api_key="sk-evil", authorization=f"Bearer {token('ann', expires=2)}")
    assert shape(through) == [(1, 4), (1, 2)]


@pytest.mark.parametrize("forged_first", [True, False])
def test_a_forged_token_beside_a_token_of_ones_own_leads_to_nobodys_sessions(
    start: Starting, forged_first: bool
) -> None:
    through = start(numbered, trusts_tokens=True)
    answer = ask(through, [USER], x_api_key="", authorization=f"Bearer {token('ann', expires=1)}")
    tokens = [f"Bearer {token('ann', expires=2)}", "Bearer sk-evil"]
    listed = [USER, answer, {"role": "user", "content": "x"}]
    httpx2.post(
        f"{through.url}/v1/messages",
        json={"model": MODEL, "max_tokens": 9, "system": "s", "messages": listed},
        headers=[("authorization", each) for each in (tokens if forged_first else tokens[::-1])],
    )
    assert shape(through) == [(1, 2)], "the provider refuses two, and nothing is kept of it"


def test_one_key_under_two_names_is_one_tenant() -> None:
    both = {"x-api-key": "sk", "authorization": "Bearer sk"}
    assert tenant_of(both, secret=SECRET) == tenant_of({"x-api-key": "sk"}, secret=SECRET)


def bearer(alg: Any = "RS256", signature: Any = "c2ln", **claims: Any) -> dict[str, str]:
    head, told = (
        urlsafe_b64encode(msgspec.json.encode(each)).decode().rstrip("=") for each in ({"alg": alg}, claims)
    )
    return {"authorization": f"Bearer {head}.{told}.{signature}"}


@pytest.mark.parametrize("trusts_tokens", [False, True])
@pytest.mark.parametrize(
    "forged", [{"alg": "none"}, {"alg": "None"}, {"signature": ""}, {"alg": ""}], ids=str
)
def test_an_unsigned_token_enters_nobodys_tenant(forged: dict[str, str], trusts_tokens: bool) -> None:
    own = tenant_of(bearer(sub="ann"), secret=SECRET, trusts_tokens=trusts_tokens)
    assert tenant_of(bearer(sub="ann", **forged), secret=SECRET, trusts_tokens=trusts_tokens) != own


def test_a_forged_token_enters_nobodys_tenant_though_the_provider_checks_nothing(start: Starting) -> None:
    through = start(numbered)
    answer = ask(through, [USER], x_api_key="", authorization=f"Bearer {token('ann', expires=1)}")
    listed = [USER, answer, {"role": "user", "content": "x"}]
    ask(through, listed, x_api_key="", authorization=f"Bearer {token('ann', expires=2)}")
    assert shape(through) == [(1, 4), (1, 2)], "another token is another tenant, whatever it claims"


def test_two_members_of_one_workspace_are_two_tenants() -> None:
    space = {"https://api.openai.com/auth": {"chatgpt_account_id": "space"}}
    tenant = partial(tenant_of, secret=SECRET, trusts_tokens=True)
    ann, bob = (tenant(bearer(sub=name, **space)) for name in ("ann", "bob"))
    assert ann != bob
    assert ann == tenant(bearer(sub="ann", exp=9, **space)), "refreshed"
    assert ann != tenant(bearer(sub="ann")), "another account of hers"


def refusing(said: str, *, status: int = 400, kind: str = "invalid_request_error") -> Any:
    def answer(seen: Seen) -> Answer:
        if "poison" in str(seen.body["messages"]):
            return Fail(status=status, type=kind, message=said)
        return calls_a_tool(seen)

    return answer


def test_a_limit_that_one_tenants_requests_are_refused_for_is_not_another_tenants(start: Starting) -> None:
    through = start(refusing("prompt is too long: 12000 tokens > 9000 maximum"))
    poison = {"role": "user", "content": "poison " * 12_000}
    body = {"model": MODEL, "max_tokens": 9, "messages": [poison]}
    assert through.post(body, x_api_key="sk-evil").status_code == 400
    working(through, 8, size=600)
    assert [each.compactions for each in through.store.sessions() if each.turns == 8] == [0]


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (400, "invalid_request_error", "messages.0.type: unknown tag 'maximum context length is 9000'"),
        (413, "request_too_large", "Request exceeds the maximum size"),
    ],
    ids=["a client's own words", "bytes"],
)
def test_what_cannot_be_the_models_limit_is_not_learned(
    start: Starting, status: int, kind: str, said: str
) -> None:
    through = start(refusing(said, status=status, kind=kind))
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "poison"}]}
    assert through.post(body | {"tools": ANTHROPIC_TOOLS}).status_code == status
    working(through, 8, size=600)
    assert [each.compactions for each in through.store.sessions() if each.turns == 8] == [0]
