"""The dashboard over HTTP: who gets in, who sees contents, what can be done, and what a foreign page gets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import Struct

from lowwater import Lowwater
from lowwater.core.stored import About
from lowwater.errors import BadInput
from lowwater.gateway.app import Gateway
from lowwater.gateway.dashboard.access import HEADER, DashboardAccess, Grant
from lowwater.gateway.dashboard.app import Dashboard, DashboardServer
from lowwater.gateway.dashboard.figures import WindowFillings
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.protocols import Store
from lowwater.settings import Settings
from lowwater.stores.memory import MemoryStore
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing import demo_session
from tests.gateway.conftest import Starting, eventually

TOKEN = "lw-the-token-of-this-test-1"
SECRET_WORD = "SSN-4711-belongs-to-nobody"


class Opened(Struct, frozen=True, kw_only=True):
    """A dashboard that is served, and what a browser that has its token sends."""

    url: str
    store: Store
    client: httpx2.Client

    def get(self, path: str, **query: str) -> httpx2.Response:
        return self.client.get(f"{self.url}/dashboard/api/{path}", params=query)

    def post(self, path: str, **body: Any) -> httpx2.Response:
        answer = self.client.post(
            f"{self.url}/dashboard/api/{path}", json=body, headers=self.key or {HEADER: "none"}
        )
        if path == "login" and answer.is_success:
            self.client.headers[HEADER] = answer.json()["page_key"]
        return answer

    @property
    def key(self) -> dict[str, str]:
        """The header with the page's key, once it has one."""
        return {HEADER: self.client.headers[HEADER]} if HEADER in self.client.headers else {}


def worked_session(store: Store, name: str, *, turns: int = 60) -> None:
    """Play a session with compactions; its newest user message holds a word to look for."""
    messages = demo_session(turns=turns).as_anthropic()
    assert isinstance(messages, list)
    session = Lowwater(model="claude-haiku-4-5", store=store, summarizer=()).session(
        name, title="Fix the failing parser tests"
    )
    for at, message in enumerate(messages):
        if message["role"] == "assistant":
            session.prepare(messages[:at])
            usage = session.status().expected_usage
            told = {
                "input_tokens": usage.uncached,
                "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": usage.cache_write + usage.cache_write_long,
                "output_tokens": 40,
            }
            answer = {"type": "message", "role": "assistant", "stop_reason": "end_turn"}
            session.record({**answer, "content": message["content"], "usage": told})
    session.append({"role": "user", "content": f"Remember {SECRET_WORD}."})
    session.compress()


@pytest.fixture(scope="module")
def store() -> Store:
    kept = MemoryStore()
    worked_session(kept, "work")
    return kept


def opened(store: Store, *, is_owner: bool = True, undo_seconds: float = 600) -> Dashboard:
    access = DashboardAccess(is_owner=is_owner, token=TOKEN)
    return Dashboard(store, GatewayOptions(), access, undo_seconds=undo_seconds)


@pytest.fixture
def owner(store: Store) -> Iterator[Opened]:
    with served(DashboardServer(opened(store))) as url, httpx2.Client(timeout=30) as client:
        found = Opened(url=url, store=store, client=client)
        assert found.post("login", token=TOKEN).status_code == 200
        yield found


@pytest.fixture
def operator(store: Store) -> Iterator[Opened]:
    with (
        served(DashboardServer(opened(store, is_owner=False))) as url,
        httpx2.Client(timeout=30) as client,
    ):
        found = Opened(url=url, store=store, client=client)
        assert found.post("login", token=TOKEN).status_code == 200
        yield found


# Figures


def test_a_session_is_told_with_its_calls_its_bill_and_its_compactions(owner: Opened) -> None:
    (row,) = owner.get("sessions").json()["sessions"]
    assert (row["name"], row["title"], row["turns"]) == ("work", "Fix the failing parser tests", 60)
    page = owner.get("session", name="work").json()
    calls, costs = page["calls"], page["costs"]
    assert calls["index"] == list(range(1, 61))
    assert calls["paid"][-1] == costs["total"] == row["cost"]
    assert calls["untouched"][-1] == costs["untouched"] > costs["total"]
    assert page["compaction_count"] == row["compactions"] == len(page["compactions"]) > 0
    for event in page["compactions"]:
        reason = owner.get("reason", name="work", number=str(event["number"])).json()
        assert reason["because"]["said"]
        assert {name: reason[name] for name in event} == event
    assert owner.get("reason", name="work", number="999").status_code == 400
    assert page["cache"]["until"] == calls["at"][-1] + page["cache"]["lifetime"]


def test_what_fills_the_window_adds_up_to_each_prompt(owner: Opened) -> None:
    calls = owner.get("session", name="work").json()["calls"]
    filling = owner.get("filling", name="work").json()
    assert filling["index"] == calls["index"]
    sums = [sum(kinds) for kinds in zip(*filling["kinds"].values(), strict=True)]
    assert sums == calls["prompt"]
    results, shortened = filling["kinds"]["results"], filling["kinds"]["shortened"]
    assert max(results) > max(calls["prompt"]) / 3, "a coding agent's prompts are mostly tool results"
    assert shortened[0] == 0
    assert max(shortened) > 0


def test_what_fills_the_window_is_counted_on_when_a_session_goes_on() -> None:
    kept = MemoryStore()
    messages = demo_session(turns=70).as_anthropic()
    assert isinstance(messages, list)
    lowwater = Lowwater(model="claude-haiku-4-5", store=kept, summarizer=())
    session = lowwater.session("grows")
    goes_on = WindowFillings(kept, Settings())
    looked = 0
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        session.prepare(messages[:at])
        session.record({"role": "assistant", "content": message["content"], "stop_reason": "end_turn"})
        if at % 20 == 1:
            session.compress()
        if at == len(messages) // 2:
            session.rewind(session.checkpoints()[0].name)
        if at % 6 == 1:
            (listed,) = kept.sessions()
            assert goes_on.page(listed) == WindowFillings(kept, Settings()).page(listed)
            looked += 1
    assert looked > 10
    assert listed.compactions > 2
    kept.delete("grows")
    again = Lowwater(model="claude-haiku-4-5", store=kept, summarizer=()).session("grows")
    again.prepare(messages[:1])
    again.record({"role": "assistant", "content": "Done.", "stop_reason": "end_turn"})
    (listed,) = kept.sessions()
    assert goes_on.page(listed)["index"] == [1]


def test_a_long_session_has_as_many_points_as_a_screen_and_the_whole_bill() -> None:
    from lowwater.core.api_calls import Usage
    from lowwater.core.entries import Opened as SessionOpened
    from lowwater.core.events import TurnRecord
    from lowwater.core.stored import Append
    from lowwater.gateway.dashboard.figures import session_page

    kept = MemoryStore()
    version = kept.append(
        "long",
        0,
        Append(entries=(SessionOpened(at=1.0, model="claude-haiku-4-5", vocabulary="o200k_base"),)),
    )
    for at in range(3_000):
        usage = Usage(uncached=10, cache_read=at)
        record = TurnRecord(at=2.0 + at, model="claude-haiku-4-5", usage=usage, cost=7, untouched=9)
        version = kept.append("long", version, Append(record=record))
    (listed,) = kept.sessions()
    calls: Any = session_page(kept, listed, Settings(), sees=True)["calls"]
    assert len(calls["index"]) <= 1_200
    assert (calls["index"][0], calls["index"][-1]) == (1, 3_000)
    assert (calls["paid"][-1], calls["untouched"][-1]) == (21_000, 27_000)


# Who gets in


def test_nothing_is_read_without_the_token(store: Store) -> None:
    with served(DashboardServer(opened(store))) as url, httpx2.Client(timeout=30) as client:
        stranger = Opened(url=url, store=store, client=client)
        for path in (
            "sessions",
            "session",
            "filling",
            "reason",
            "compaction",
            "message",
            "pins",
            "search",
            "events",
            "export",
        ):
            answer = stranger.get(path, name="work", number="1", words="Remember")
            assert answer.status_code == 401, path
            assert "work" not in answer.text
        for path in ("undo", "pin", "unpin", "compact", "delete", "restore", "unlock"):
            assert stranger.post(path, name="work").status_code == 401, path
        assert stranger.post("login", token="lw-guess").status_code == 403
        assert not stranger.client.cookies
        for each in range(12):
            stranger.post("login", token=f"lw-guess-{each}")
        assert stranger.post("login", token=TOKEN).status_code == 200, "guesses keep nobody out"
        page = client.get(f"{url}/dashboard")
        assert page.status_code == 200
        assert TOKEN not in page.text


def test_two_dashboards_on_one_host_keep_out_of_each_others_way(store: Store) -> None:
    with (
        served(DashboardServer(opened(store))) as one,
        served(DashboardServer(opened(store))) as two,
        httpx2.Client(timeout=30) as client,
    ):
        at_one, at_two = (Opened(url=url, store=store, client=client) for url in (one, two))
        assert at_one.post("login", token=TOKEN).is_success
        key_of_one = client.headers[HEADER]
        assert at_two.post("login", token=TOKEN).is_success
        assert at_two.get("sessions").is_success
        client.headers[HEADER] = key_of_one
        assert at_one.get("sessions").is_success
        assert at_two.get("sessions").status_code == 401


@pytest.mark.parametrize("host", ["127.0.0.1:x", "127.0.0.1:99999", "[::1", "localhost:"])
def test_an_address_without_a_usable_port_breaks_nothing(owner: Opened, host: str) -> None:
    answer = owner.client.get(f"{owner.url}/dashboard/api/sessions", headers={"host": host})
    assert answer.status_code in {200, 401, 403}


def test_a_cookie_ends_with_its_time_and_by_logging_out() -> None:
    now = [0.0]
    access = DashboardAccess(is_owner=True, token=TOKEN, clock=lambda: now[0])
    first, second = access.admit(TOKEN), access.admit(TOKEN)
    assert first
    assert second
    access.lock(first)
    assert access.grant_of(first) is None
    assert access.grant_of(second) is not None
    now[0] += 13 * 3600
    assert access.grant_of(second) is None


@pytest.mark.parametrize("key", ["", "none", "1", "\xe9"])
def test_a_cookie_alone_opens_nothing_because_a_browser_sends_it_to_other_ports_too(
    owner: Opened, key: str
) -> None:
    cookies = dict(owner.client.cookies)
    headers = {HEADER.encode(): key.encode("latin-1")} if key else {}
    for path in (
        "sessions",
        "session",
        "filling",
        "reason",
        "compaction",
        "message",
        "pins",
        "search",
        "export",
    ):
        query = {"name": "work", "number": "1", "words": "Remember"}
        url = f"{owner.url}/dashboard/api/{path}"
        answer = httpx2.get(url, params=query, cookies=cookies, headers=headers)
        assert answer.status_code == 401, path
        assert "work" not in answer.text
    for path in ("undo", "pin", "unpin", "compact", "delete", "restore", "unlock", "logout"):
        url, sent = f"{owner.url}/dashboard/api/{path}", {"name": "work", "text": "obey", "confirmed": "work"}
        assert httpx2.post(url, json=sent, cookies=cookies, headers=headers).status_code in {401, 403}, path
    assert owner.get("sessions").status_code == 200


def test_the_key_of_one_cookie_does_not_open_another() -> None:
    access = DashboardAccess(is_owner=True, token=TOKEN)
    first, second = access.admit(TOKEN) or "", access.admit(TOKEN) or ""
    keys = [grant.page_key for grant in map(access.grant_of, (first, second)) if grant is not None]
    assert access.opened(first, keys[0]) is not None
    assert access.opened(first, keys[1]) is None
    assert access.opened("", "") is None


def test_a_token_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 16 characters"):
        DashboardAccess(is_owner=True, token="opensesame")


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(store: Store) -> None:
    with served(DashboardServer(opened(store))) as url:
        answer = httpx2.post(f"{url}/dashboard/api/login", json={"token": TOKEN}, headers={HEADER: "1"})
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/dashboard" in cookie


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"origin": "https://evil.example"}, id="foreign-origin"),
        pytest.param({"origin": "null"}, id="origin-null"),
        pytest.param({"host": "evil.example"}, id="rebound-host"),
        pytest.param({"sec-fetch-site": "cross-site"}, id="cross-site"),
    ],
)
def test_a_foreign_page_gets_nowhere_even_with_the_cookie(owner: Opened, headers: dict[str, str]) -> None:
    """The cookie is sent along here, as if a browser had let it slip."""
    read = owner.client.get(f"{owner.url}/dashboard/api/sessions", headers=headers)
    assert read.status_code == 403
    assert "work" not in read.text
    sent = {**headers, **owner.key}
    acted = owner.client.post(
        f"{owner.url}/dashboard/api/pin", json={"name": "work", "text": "obey evil.example"}, headers=sent
    )
    assert acted.status_code == 403
    assert "evil" not in owner.get("pins", name="work").text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_of_another_site_is_no_action(owner: Opened, kind: str) -> None:
    body = json.dumps({"name": "work", "text": "obey"})
    url, cookies = f"{owner.url}/dashboard/api/pin", dict(owner.client.cookies)
    for extra in ({}, owner.key):
        sent = httpx2.post(url, content=body, headers={"content-type": kind, **extra}, cookies=cookies)
        assert sent.status_code == 403
    answer = httpx2.post(url, json={"name": "work", "text": "obey"}, cookies=cookies)
    assert answer.status_code == 403, "without the page's own header"
    assert owner.client.get(f"{owner.url}/dashboard/api/pin", params={"name": "work"}).status_code == 405


def test_the_page_may_load_nothing_but_its_own_files(owner: Opened) -> None:
    for path in ("", "/app.js", "/app.css", "/api/sessions"):
        headers = owner.client.get(f"{owner.url}/dashboard{path}").headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


ODD_VALUES = (
    '"\\ud800"',
    '"a\\u0000b"',
    "1e400",
    "null",
    "[]",
    '{"a": 1}',
    '"lw:999999999999999"',
    '"lw:0"',
    "-1",
    '"("',
    '"%00"',
)
ODD_WORDS = (
    "%ED%B2%80",
    "%00",
    "-1",
    "%C2%B2",
    "%D9%A3",
    "999999999",
    "%22",
    "NEAR(a%20b)",
    "a*",
    "((",
    "AND%20OR",
    "-" * 2_000,
    "a+" * 900,
)


def test_whatever_is_sent_is_answered_with_a_sentence(tmp_path: Path) -> None:
    kept = SqliteStore(tmp_path / "odd.db")
    worked_session(kept, "work", turns=6)
    with served(DashboardServer(opened(kept))) as url, httpx2.Client(timeout=30) as client:
        page = Opened(url=url, store=kept, client=client)
        assert page.post("login", token=TOKEN).status_code == 200
        headers = {"content-type": "application/json", **page.key}
        for path in ("undo", "pin", "unpin", "compact", "delete", "restore", "unlock", "login"):
            bodies = [
                f'{{"name": "work", "{key}": {value}}}'.encode()
                for key in ("text", "to", "name", "focus", "token", "key", "confirmed")
                for value in ODD_VALUES
            ]
            for body in (*bodies, b"", b"[]", b"[" * 20_000, b"\xff\xfe", b'{"name": "work", "name": 1}'):
                answer = client.post(f"{url}/dashboard/api/{path}", content=body, headers=headers)
                assert answer.status_code < 500, (path, body[:80], answer.text)
        for path in (
            "sessions",
            "session",
            "filling",
            "reason",
            "compaction",
            "message",
            "pins",
            "search",
            "export",
        ):
            for key in ("name", "number", "words", "first"):
                for word in ODD_WORDS:
                    answer = client.get(f"{url}/dashboard/api/{path}?name=work&{key}={word}")
                    assert answer.status_code < 500, (path, key, word, answer.text)
    kept.close()


# Who sees contents


def test_an_operator_sees_figures_and_no_words(operator: Opened) -> None:
    listed, page = operator.get("sessions"), operator.get("session", name="work")
    assert page.json()["costs"]["total"] > 0
    assert "Fix the failing parser tests" not in listed.text + page.text
    for path in ("compaction", "message", "pins", "export"):
        assert operator.get(path, name="work", number="1").status_code == 403, path
    assert operator.get("search", name="work", words="Remember").status_code == 403
    assert operator.get("search", words=SECRET_WORD).json() == {"hits": []}
    for path in ("undo", "pin", "compact", "delete"):
        assert (
            operator.post(path, name="work", to="before-compaction-1", confirmed="work").status_code == 403
        ), path


def test_a_tenants_key_opens_that_tenants_sessions_and_no_others(start: Starting) -> None:
    through = start(dashboard_token=TOKEN)
    body = {
        "model": "claude-opus-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": SECRET_WORD}],
    }
    assert through.post(body).status_code == 200
    assert eventually(lambda: through.store.sessions() and through.store.sessions()[0].turns)
    with httpx2.Client(timeout=30) as client:
        page = Opened(url=through.url, store=through.store, client=client)
        assert page.post("login", token=TOKEN).status_code == 200
        name = page.get("sessions").json()["sessions"][0]["name"]
        assert page.get("message", name=name, number="1").status_code == 403
        assert page.post("unlock", key="").status_code == 403
        assert page.post("unlock", key="sk-another").status_code == 200
        assert page.get("message", name=name, number="1").status_code == 403, "the key is another tenant's"
        assert page.post("unlock", key="sk-one").status_code == 200
        assert SECRET_WORD in page.get("message", name=name, number="1").text


def test_where_all_are_one_tenant_a_key_of_the_gateways_own_is_asked_for() -> None:
    kept = MemoryStore()
    access = DashboardAccess(is_owner=False, token=TOKEN)
    cookie = access.admit(TOKEN) or ""
    options = GatewayOptions(tenant="team", access_keys=("gw-key",))
    assert not access.unlock(cookie, "sk-of-a-client", options, kept.secret())
    assert access.unlock(cookie, "gw-key", options, kept.secret())
    grant = access.grant_of(cookie)
    assert grant is not None
    assert grant.sees(About(source="gateway:team"))
    assert grant.sees(About(source="gateway:team:project-1"))
    assert not grant.sees(About(source="gateway:team2"))
    assert not Grant(until=1, is_owner=False).sees(About(source="gateway:"))


def test_run_shows_its_user_everything(store: Store) -> None:
    with (
        served(
            Gateway(GatewayOptions(tenant="me", capability="lw-cap-1", dashboard_token=TOKEN), store)
        ) as url,
        httpx2.Client(timeout=30) as client,
    ):
        page = Opened(url=url, store=store, client=client)
        assert page.post("login", token=TOKEN).status_code == 200
        assert SECRET_WORD in page.get("search", words="Remember").text


def test_a_gateway_for_others_shows_no_contents_whatever_its_tenant_is_called(store: Store) -> None:
    options = GatewayOptions(tenant="me", access_keys=("gw-key",), dashboard_token=TOKEN)
    with served(Gateway(options, store)) as url, httpx2.Client(timeout=30) as client:
        page = Opened(url=url, store=store, client=client)
        assert page.post("login", token=TOKEN).status_code == 200
        assert page.get("search", words="Remember").json() == {"hits": []}
        assert page.get("message", name="work", number="1").status_code == 403


# Contents and actions


def test_a_compaction_is_shown_with_what_stands_for_what(owner: Opened) -> None:
    events = owner.get("session", name="work").json()["compactions"]
    last = owner.get("compaction", name="work", number=str(events[-1]["number"])).json()
    kinds = {change["kind"] for change in last["changes"]}
    assert kinds & {"summarised", "edited"}
    summarised = [change for change in last["changes"] if change["kind"] == "summarised"]
    for change in summarised:
        assert change["originals"]
        assert change["parts"][0]["now"]
        assert change["after"] < change["before"]
    assert owner.get("compaction", name="work", number="99").status_code == 400


def test_search_finds_what_is_in_no_view_and_the_whole_message_can_be_read(owner: Opened) -> None:
    (hit,) = owner.get("search", words=SECRET_WORD).json()["hits"][:1]
    assert SECRET_WORD in hit["text"]
    whole = owner.get("message", name="work", number=str(hit["number"])).json()
    assert whole["text"] == f"Remember {SECRET_WORD}."


def test_secrets_are_concealed_in_everything_that_is_shown() -> None:
    kept = MemoryStore()
    key = "sk-ant-api03-" + "a1B2" * 20
    session = Lowwater(model="claude-haiku-4-5", store=kept, summarizer=()).session("leak")
    session.append({"role": "user", "content": f"My key is {key}, never log it."})
    with served(DashboardServer(opened(kept))) as url, httpx2.Client(timeout=30) as client:
        page = Opened(url=url, store=kept, client=client)
        page.post("login", token=TOKEN)
        shown = [
            page.get("message", name="leak", number="1").text,
            page.get("search", words="key").text,
            page.get("export", name="leak").text,
            page.get("pins", name="leak").text,
        ]
        assert all(key not in text for text in shown)
        assert "never log it" in shown[0]


def test_compacting_pinning_and_undoing_are_what_the_session_does() -> None:
    kept = MemoryStore()
    worked_session(kept, "mine", turns=20)
    with served(DashboardServer(opened(kept))) as url, httpx2.Client(timeout=30) as client:
        page = Opened(url=url, store=kept, client=client)
        page.post("login", token=TOKEN)
        before = page.get("session", name="mine").json()
        number = before["compaction_count"]
        assert page.post("undo", name="mine", to=f"before-compaction-{number}").json() == {"ok": True}
        undone = page.get("session", name="mine").json()
        assert undone["sizes"]["prompt"] > before["sizes"]["prompt"]
        done = page.post("compact", name="mine", focus="the parser").json()
        assert done["ok"]
        assert done["after"] < done["before"]
        assert page.post("pin", name="mine", text="Never rename the parser.").json() == {"ok": True}
        texts = [pin["text"] for pin in page.get("pins", name="mine").json()["pins"]]
        assert "Never rename the parser." in texts
        assert page.post("unpin", name="mine", text="Never rename the parser.").json() == {"ok": True}
        assert "Never rename" not in page.get("pins", name="mine").text
        assert page.post("undo", name="mine", to="nowhere").status_code == 400
        lines = page.get("export", name="mine").text.splitlines()
        assert len(lines) == before["history"]


def test_a_deletion_asks_for_the_name_can_be_taken_back_and_spares_what_went_on() -> None:
    kept = MemoryStore()
    for name in ("one", "two", "three"):
        Lowwater(model="claude-haiku-4-5", store=kept, summarizer=()).session(name).append(
            {"role": "user", "content": "Hi."}
        )
    with served(DashboardServer(opened(kept, undo_seconds=1.5))) as url, httpx2.Client(timeout=30) as client:
        page = Opened(url=url, store=kept, client=client)
        page.post("login", token=TOKEN)
        assert page.post("delete", name="one").status_code == 400
        for name in ("one", "two", "three"):
            assert page.post("delete", name=name, confirmed=name).status_code == 200
        assert page.post("pin", name="one", text="Never.").status_code == 409
        assert page.post("restore", name="two").status_code == 200
        Lowwater(model="claude-haiku-4-5", store=kept, summarizer=()).session("three").append(
            {"role": "user", "content": "I am still here."}
        )
        assert eventually(lambda: {each.name for each in kept.sessions()} == {"two", "three"})


def test_deletions_that_can_still_be_taken_back_are_not_done_at_the_end() -> None:
    kept = MemoryStore()
    Lowwater(model="claude-haiku-4-5", store=kept, summarizer=()).session("one").append(
        {"role": "user", "content": "Hi."}
    )
    with served(DashboardServer(opened(kept))) as url, httpx2.Client(timeout=30) as client:
        page = Opened(url=url, store=kept, client=client)
        page.post("login", token=TOKEN)
        page.post("delete", name="one", confirmed="one")
    assert [each.name for each in kept.sessions()] == ["one"]


def test_a_stream_tells_of_every_change_and_ends_with_the_server(store: Store) -> None:
    kept = MemoryStore()
    session = Lowwater(model="claude-haiku-4-5", store=kept, summarizer=()).session("live")
    session.append({"role": "user", "content": "Hi."})
    with served(DashboardServer(opened(kept))) as url, httpx2.Client(timeout=30) as client:
        page = Opened(url=url, store=kept, client=client)
        page.post("login", token=TOKEN)
        with client.stream("GET", f"{url}/dashboard/api/events", params={"name": "live"}) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data:"))
            first = next(lines)
            session.append({"role": "user", "content": "And now?"})
            assert next(lines) != first
            assert SECRET_WORD not in first


def test_a_gateway_forwards_everything_but_its_dashboard(start: Starting) -> None:
    through = start(dashboard_token=TOKEN)
    assert httpx2.get(f"{through.url}/dashboard").headers["content-type"].startswith("text/html")
    assert not through.provider.requests
