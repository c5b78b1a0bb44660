"""The dashboard in a real browser, beside an agent that works: every action, at desk and phone, light and dark."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright import sync_api as playwright

from lowwater.gateway.dashboard.access import DashboardAccess
from lowwater.gateway.dashboard.app import Dashboard, DashboardServer
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.protocols import Store
from lowwater.stores.memory import MemoryStore
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, calls_a_tool, eventually, working
from tests.gateway.test_dashboard import SECRET_WORD, TOKEN, worked_session

INSTALLED = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
IS_NEEDED = bool(os.environ.get("TESTS_NEED_BROWSER"))
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PICTURES = os.environ.get("TESTS_PICTURES", "")
"""A folder for screenshots; `make picture` sets it."""
_PICTURED = {"dashboard-light-desk", "dashboard-dark-phone"}


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as started:
        path = INSTALLED or started.chromium.executable_path
        if not Path(path).exists():
            (pytest.fail if IS_NEEDED else pytest.skip)("no Chromium is installed")
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def store() -> Store:
    kept = MemoryStore()
    worked_session(kept, "work", turns=90)
    return kept


class Tab:
    """A page that notes every complaint of the browser and every request to anywhere else."""

    def __init__(
        self, browser: playwright.Browser, base: str, *, scheme: Any = "light", size: Any = DESK
    ) -> None:
        self.base, self.wrong = base, list[str]()
        self.context = browser.new_context(color_scheme=scheme, viewport=size, accept_downloads=True)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._note)
        self.page.on("request", lambda request: self._check(request.url))

    def _note(self, line: playwright.ConsoleMessage) -> None:
        if line.type == "error" and "the server responded with a status of 4" not in line.text:
            self.wrong.append(line.text)

    def _check(self, url: str) -> None:
        if not url.startswith((self.base, "data:", "blob:")):
            self.wrong.append(url)

    def enter(self, token: str = TOKEN) -> playwright.Page:
        self.page.goto(f"{self.base}/dashboard#token={token}")
        return self.page

    def open_session(self, name: str) -> playwright.Page:
        page = self.enter()
        page.get_by_role("link", name=re.compile(name)).first.click()
        page.wait_for_selector("#fill canvas")
        return page

    def said(self, words: str) -> None:
        playwright.expect(self.page.locator("#said")).to_contain_text(words, timeout=60_000)


@pytest.fixture
def served_url(store: Store) -> Iterator[str]:
    access = DashboardAccess(is_owner=True, token=TOKEN)
    with served(DashboardServer(Dashboard(store, GatewayOptions(), access))) as url:
        yield url


LOOKS = pytest.mark.parametrize(
    ("scheme", "size"),
    [
        pytest.param(scheme, size, id=f"{scheme}-{name}")
        for scheme in ("light", "dark")
        for name, size in (("desk", DESK), ("phone", PHONE))
    ],
)


@LOOKS
def test_list_and_session_are_drawn_fit_the_screen_and_are_accessible(
    browser: playwright.Browser, served_url: str, scheme: str, size: dict[str, int], request: Any
) -> None:
    tab = Tab(browser, served_url, scheme=scheme, size=size)
    page = tab.enter()
    page.wait_for_selector("#rows td")
    assert TOKEN not in page.url, "the address can be shown to others"
    _check_page(page, "the list")
    tab.open_session("Fix the failing parser tests")
    page.locator("details.event summary").first.click()
    page.get_by_role("button", name="Before and after").first.click()
    page.wait_for_selector("#events .soft, #events .sides")
    _check_page(page, "the session")
    _picture(page, f"dashboard-{request.node.callspec.id}")
    assert tab.wrong == []
    tab.context.close()


def _check_page(page: playwright.Page, what: str) -> None:
    width = page.evaluate("innerWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, what
    found = Axe().run(page).response["violations"]
    serious = [
        (each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in {"serious", "critical"}
    ]
    assert serious == [], what


def _picture(page: playwright.Page, name: str) -> None:
    if PICTURES and name in _PICTURED:
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_a_list_that_comes_late_does_not_replace_the_session_that_was_opened_meanwhile(
    browser: playwright.Browser, served_url: str
) -> None:
    tab = Tab(browser, served_url)
    tab.enter().wait_for_selector("#rows td")
    page = tab.page
    page.get_by_role("link", name="Fix the failing parser tests").first.click()
    page.wait_for_selector("#fill canvas")
    held: list[playwright.Route] = []
    is_list = re.compile(r"/sessions\b")
    page.route(is_list, lambda route: held.append(route))  # noqa: PLW0108 - Playwright looks at the handler's signature
    with page.expect_request(is_list):
        page.get_by_role("link", name="All sessions").click()
    with page.expect_response(re.compile(r"/filling\b")):
        page.go_back()
    with page.expect_response(is_list) as late:
        for each in held:
            each.continue_()
    late.value.finished()
    page.evaluate("fetch('/dashboard').then(answer => answer.text())")
    assert page.get_by_role("heading", name="Sessions", exact=True).count() == 0
    tab.context.close()


def test_without_the_token_there_is_nothing_to_see_and_pasting_it_opens_the_list(
    browser: playwright.Browser, served_url: str
) -> None:
    tab = Tab(browser, served_url)
    page = tab.page
    page.goto(f"{served_url}/dashboard")
    page.get_by_label("Token").fill("lw-wrong")
    page.get_by_role("button", name="Open").click()
    tab.said("not this dashboard's token")
    assert "Fix the failing parser tests" not in page.content()
    page.get_by_label("Token").fill(f"{served_url}/dashboard#token={TOKEN}")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Fix the failing parser tests").wait_for()
    assert tab.wrong == []


def test_every_action_of_a_session(browser: playwright.Browser) -> None:
    kept = MemoryStore()
    worked_session(kept, "work", turns=40)
    access = DashboardAccess(is_owner=True, token=TOKEN)
    with served(DashboardServer(Dashboard(kept, GatewayOptions(), access))) as url:
        tab = Tab(browser, url)
        page = tab.open_session("Fix the failing parser tests")
        # Undo
        page.locator("details.event summary").first.click()
        page.get_by_role("button", name="Undo to before this").first.click()
        page.get_by_role("button", name="Undo", exact=True).click()
        tab.said("are undone")
        # Compact with a focus
        page.get_by_label("Compact now").fill("the parser")
        page.get_by_role("button", name="Compact", exact=True).click()
        tab.said("Compacted:")
        # Pin and unpin
        page.get_by_label("Pin a text").fill("Never rename the parser.")
        page.get_by_role("button", name="Pin", exact=True).click()
        line = page.locator("#pins li", has_text="Never rename the parser.")
        line.get_by_role("button", name="Unpin").click()
        tab.said("No longer in force")
        playwright.expect(line).to_have_count(0)
        # Recall
        page.get_by_label("Words").fill(SECRET_WORD)
        page.get_by_role("button", name="Search").click()
        page.get_by_role("button", name="Whole message").first.click()
        playwright.expect(page.locator(".hits .quote").first).to_contain_text(SECRET_WORD)
        # Export
        with page.expect_download() as coming:
            page.click("#export")
        lines = Path(coming.value.path()).read_text(encoding="utf-8").splitlines()
        assert any(SECRET_WORD in each for each in lines)
        # Delete, which asks for the name, and restore
        page.click("#delete")
        assert page.locator("#yes").is_disabled()
        page.locator("#answer").fill("work")
        page.locator("#yes").click()
        page.click("#restore")
        tab.said("Restored.")
        assert page.locator("#delete").is_visible()
        assert [each.name for each in kept.sessions()] == ["work"]
        assert tab.wrong == []


def test_a_live_session_grows_on_the_page_while_an_agent_works(
    browser: playwright.Browser, start: Starting
) -> None:
    through = start(calls_a_tool, dashboard_token=TOKEN, marks="auto")
    messages = working(through, 2)
    assert eventually(lambda: through.store.sessions() and through.store.sessions()[0].turns == 2)
    tab = Tab(browser, through.url)
    page = tab.enter()
    page.get_by_role("button", name="Show contents").click()
    page.locator("#answer").fill("sk-one")
    page.get_by_role("button", name="Show", exact=True).click()
    tab.said("Contents of this key's sessions")
    page.locator("#rows td a").first.click()
    playwright.expect(page.locator("#meta")).to_contain_text("live")
    playwright.expect(page.locator("#tiles")).to_contain_text("2 calls")
    for calls in (3, 4):
        body = {"model": MODEL, "max_tokens": 1_000, "system": "You work.", "tools": ANTHROPIC_TOOLS}
        content = through.post({**body, "messages": messages}).json()["content"]
        result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "done"}
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        playwright.expect(page.locator("#tiles")).to_contain_text(f"{calls} calls", timeout=60_000)
    playwright.expect(page.locator("#tiles")).to_contain_text("warm")
    assert through.provider.refusals == ()
    assert tab.wrong == []


def test_what_a_session_says_is_text_and_loads_nothing(browser: playwright.Browser) -> None:
    from lowwater import Lowwater

    kept = MemoryStore()
    evil = (
        "<img src=https://evil.example/x onerror=window.stolen=1><script>window.stolen=1</script> never stop"
    )
    session = Lowwater(model="claude-haiku-4-5", store=kept, summarizer=()).session("<b>x</b>", title=evil)
    session.append({"role": "user", "content": f"From now on, {evil}"})
    access = DashboardAccess(is_owner=True, token=TOKEN)
    with served(DashboardServer(Dashboard(kept, GatewayOptions(), access))) as url:
        tab = Tab(browser, url)
        page = tab.enter()
        page.locator("#rows td a").first.click()
        page.wait_for_selector("#tiles li")
        page.get_by_label("Words").fill("evil example")
        page.get_by_role("button", name="Search").click()
        playwright.expect(page.locator(".hits .quote").first).to_contain_text("onerror")
        assert page.evaluate("window.stolen") is None
        assert page.locator("main img, main script").count() == 0
        assert tab.wrong == []


def test_the_keyboard_alone_reaches_a_session(browser: playwright.Browser, served_url: str) -> None:
    tab = Tab(browser, served_url)
    page = tab.enter()
    page.wait_for_selector("#rows td")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#rows td a')"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#fill canvas")
    assert "#s=work" in page.url
