"""The pages in a real browser: drawn, quiet, without a network, and usable by pointer and by keyboard."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lowwater.lab.pages.audit import audit_page
from lowwater.lab.pages.document import utc_day as day_of
from lowwater.lab.pages.replay import replay_page
from tests.lab.report_samples import (
    DAY,
    DOLLAR,
    HOSTILE,
    MADE,
    START,
    audit_of,
    replay_of,
    session_result,
)

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

INSTALLED = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
IS_NEEDED = "TESTS_NEED_BROWSER" in os.environ
"""In `make test-full` a missing browser is a failure."""

CHARTS = {"audit": ("days",), "replay": ("frontier", "cumulated", "views", "layers", "spent")}
BARS = {"audit": ("spending", "savings", "misses"), "replay": ("ranges",)}
NAMES = pytest.mark.parametrize("name", list(CHARTS))
Opened = Callable[..., "Tab"]


class Tab:
    """A tab that takes note of everything that a page in it should not do."""

    def __init__(self, page) -> None:
        self.page = page
        self.wrong: list[str] = []
        self._address = ""
        page.on("console", lambda said: self.wrong.append(said.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        page.on("request", lambda asked: self.wrong.append(asked.url) if asked.url != self._address else None)

    def open(self, path: Path, *, scheme: str = "light") -> None:
        self.page.set_viewport_size({"width": 1_200, "height": 900})
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self._address = path.as_uri()
        self.page.goto(self._address)

    def number(self, expression: str) -> float:
        return float(self.page.evaluate(expression))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    report, timelines = replay_of(
        session_result(1, name=HOSTILE), session_result(2, calls=1_000), session_result(3), session_result(4)
    )
    nothing, none = replay_of()
    texts = {
        "audit": audit_page(audit_of(40, names={1: HOSTILE}), made_at=MADE),
        "replay": replay_page(report, timelines=timelines, made_at=MADE),
        "audit of nothing": audit_page(audit_of(0), made_at=MADE),
        "replay of nothing": replay_page(nothing, timelines=none, made_at=MADE),
        "audit of many": audit_page(audit_of(5_000), made_at=MADE),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with playwright.sync_playwright() as started:
        path = INSTALLED or started.chromium.executable_path
        if not Path(path).exists():
            (pytest.fail if IS_NEEDED else pytest.skip)("no Chromium is installed")
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield Tab(browser.new_context(offline=True).new_page())
        browser.close()


@pytest.fixture
def opened(tab: Tab, files: dict[str, Path]) -> Iterator[Opened]:
    """Open a page by its name, and see to it that it did nothing wrong."""

    def open_page(name: str, *, scheme: str = "light") -> Tab:
        tab.open(files[name], scheme=scheme)
        return tab

    tab.wrong.clear()
    yield open_page
    assert tab.wrong == []


@NAMES
def test_a_page_is_drawn_without_a_complaint_or_a_request(opened: Opened, name: str) -> None:
    tab = opened(name)
    painted = """canvas => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
    }"""
    for chart in CHARTS[name]:
        canvas = tab.page.locator(f"#{chart} canvas")
        box = canvas.bounding_box()
        assert box["width"] > 300, chart
        assert box["height"] > 60, chart
        assert canvas.evaluate(painted) > 20, chart
    for bars in BARS[name]:
        long = "all => all.filter(each => each.getBoundingClientRect().width > 1).length"
        assert tab.page.eval_on_selector_all(f"#{bars} .track i", long) >= 2, bars


@NAMES
def test_nothing_is_wider_than_the_screen(opened: Opened, name: str) -> None:
    tab = opened(name)
    for width in (320, 390, 800, 1_000, 2_000):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.page.wait_for_function(f"innerWidth === {width}")
        fits = "[...document.querySelectorAll('.chart')].every(each => each.plot.width <= each.clientWidth)"
        tab.page.wait_for_function(fits)
        assert tab.number("document.documentElement.scrollWidth") <= width


@NAMES
def test_dark_follows_the_system_and_the_button(opened: Opened, name: str) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = opened(name).page.evaluate(paper)
    page = opened(name, scheme="dark").page
    drawn = f"document.querySelector('#{CHARTS[name][0]} canvas').toDataURL()"
    dark = page.evaluate(drawn)
    assert light == "rgb(246, 247, 249)"
    assert page.evaluate(paper) == "rgb(15, 18, 22)"
    page.click("#theme")
    assert page.evaluate(paper) == light
    assert page.evaluate(drawn) != dark
    assert page.inner_text("#theme") == "Dark"


@NAMES
def test_paper_is_white_has_no_controls_and_words_of_a_readable_size(opened: Opened, name: str) -> None:
    tab = opened(name, scheme="dark")
    sizes = """said => {
        dispatchEvent(new Event(said));
        const charts = [...document.querySelectorAll(".chart")];
        return [document.documentElement.dataset.theme, ...charts.map(each => each.plot.width)];
    }"""
    on_screen = [
        "",
        *(tab.page.evaluate("[...document.querySelectorAll('.chart')].map(each => each.plot.width)")),
    ]
    assert set(tab.page.evaluate(sizes, "beforeprint")) == {"light", 900}
    assert tab.page.evaluate(sizes, "afterprint") == on_screen
    tab.page.emulate_media(media="print")
    card = "getComputedStyle(document.querySelector('section')).backgroundColor"
    assert tab.page.evaluate(card) == "rgb(255, 255, 255)"
    assert not tab.page.is_visible("#theme")
    assert tab.page.pdf(format="A4").startswith(b"%PDF")


def test_a_column_sorts_by_its_button_and_by_the_keyboard(opened: Opened) -> None:
    page = opened("audit").page
    first = "#sessions tbody tr:first-child td"
    assert page.inner_text(f"{first}:last-child") == "$40.00"
    button = page.locator("#sessions th button", has_text="calls")
    button.click()
    assert page.locator("#sessions th[aria-sort=descending]").inner_text() == "calls"
    assert page.inner_text(f"{first}:nth-child(3)") == "50"
    page.keyboard.press("Enter")
    assert page.locator("#sessions th[aria-sort=ascending]").inner_text() == "calls"
    assert page.inner_text(f"{first}:nth-child(3)") == "11"


def test_on_a_phone_a_wide_table_scrolls_beside_its_names(opened: Opened) -> None:
    page = opened("audit").page
    page.set_viewport_size({"width": 390, "height": 900})
    left = "document.querySelector('#sessions tbody td:{}').getBoundingClientRect().left"
    name, cost = page.evaluate(left.format("first-child")), page.evaluate(left.format("last-child"))
    assert cost > 390
    page.evaluate("document.querySelector('#sessions .scroll').scrollLeft = 2000")
    assert page.evaluate(left.format("first-child")) == name
    assert page.evaluate(left.format("last-child")) < 390


def test_what_is_not_known_sorts_last_either_way(opened: Opened) -> None:
    page = opened("audit").page
    costs = page.locator("#sessions tbody td:last-child")
    page.locator("#sessions .more").click()
    assert costs.count() == 40
    assert costs.last.inner_text() == "unknown"
    page.locator("#sessions th button", has_text="cost").last.click()
    assert costs.first.inner_text() == "$1.00"
    assert costs.last.inner_text() == "unknown"


def test_a_table_filters_and_shows_more(opened: Opened) -> None:
    page = opened("audit").page
    rows = page.locator("#sessions tbody tr")
    assert rows.count() == 15
    page.fill("#sessions input", "session-0039")
    assert rows.count() == 1
    assert page.inner_text("#sessions [role=status]") == "1 of 1 shown"


def test_the_pickers_change_what_is_drawn(opened: Opened) -> None:
    tab = opened("replay")
    page = tab.page
    drawn = "JSON.stringify(document.querySelector('#layers').plot.data)"
    before = page.evaluate(drawn)
    names = page.locator("#session option").all_inner_texts()
    assert len(names) == 4
    assert "1,000 calls" in names[0]
    assert "of them drawn" in page.inner_text("#session-facts")
    page.select_option("#session", label=names[1])
    assert page.evaluate(drawn) != before
    assert "of them drawn" not in page.inner_text("#session-facts")
    page.select_option("#policy", label="claude-code")
    assert page.inner_text("#layers-title").endswith("claude-code")


def test_a_session_is_opened_from_the_table(opened: Opened) -> None:
    page = opened("replay").page
    page.locator("#sessions .link", has_text="session-0003").click()
    assert "session-0003" in page.locator("#session option:checked").inner_text()


def test_events_are_marked_where_they_happened(opened: Opened) -> None:
    page = opened("replay").page
    page.select_option(
        "#session", label=page.locator("#session option", has_text="session-0003").inner_text()
    )
    marks = page.locator("#views .mark")
    assert marks.all_inner_texts() == ["▲", "■"] or marks.all_inner_texts() == ["■", "▲"]
    assert marks.first.get_attribute("title").endswith("34.7K → 20K")
    assert page.locator("#views .keys li").count() == 2


def test_a_cache_that_is_unkind_is_one_click_away(opened: Opened) -> None:
    tab = opened("replay")
    page = tab.page
    assert "real engine" in page.inner_text("#policies")
    assert "real engine" in page.inner_text("#ranges")
    page.locator("#arm button").last.click()
    assert page.locator("#arm button").last.get_attribute("aria-pressed") == "true"
    assert "real engine" not in page.inner_text("#policies")
    assert "real engine" not in page.inner_text("#ranges")


def test_a_legend_hides_and_shows_a_line(opened: Opened) -> None:
    page = opened("replay").page
    shown = "document.querySelector('#cumulated').plot.series.filter(each => each.show).length"
    before = page.evaluate(shown)
    key = page.locator("#cumulated .u-legend button", has_text="never")
    key.click()
    assert page.evaluate(shown) == before - 1
    assert key.get_attribute("aria-pressed") == "false"
    page.keyboard.press("Enter")
    assert page.evaluate(shown) == before
    assert key.get_attribute("aria-pressed") == "true"


def test_what_is_hidden_in_a_stack_leaves_no_gap(opened: Opened) -> None:
    page = opened("replay").page
    edges = "document.querySelector('#layers').plot.data.slice(1).map(each => each.at(-1))"
    summarised, elided, written, read = page.evaluate(edges)
    assert summarised > elided > written > read > 0
    page.locator("#layers .u-legend button", has_text="elided").click()
    assert page.evaluate(edges) == [summarised - elided + written, written, written, read]


def test_the_pointer_reads_exact_numbers(opened: Opened) -> None:
    page = opened("audit").page
    paid = audit_of(40).total.figures.cost or 0
    read = page.locator("#days .u-legend tr").first
    assert read.inner_text() == f"${paid / DOLLAR:.4f} in all"
    box = page.locator("#days .u-over").bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 15)
    assert read.inner_text() == f"{day_of(START + DAY)}: $1.0000 in all"
    page.mouse.move(0, 0)
    assert read.inner_text() == f"${paid / DOLLAR:.4f} in all"


def test_the_keyboard_reads_every_chart(opened: Opened) -> None:
    page = opened("replay").page
    for chart in CHARTS["replay"]:
        over = page.locator(f"#{chart} .u-over")
        over.focus()
        page.keyboard.press("Home")
        first = over.get_attribute("aria-valuetext")
        page.keyboard.press("ArrowRight")
        assert over.get_attribute("aria-valuenow") == "1"
        page.keyboard.press("End")
        assert over.get_attribute("aria-valuetext") != first, chart
        assert over.get_attribute("aria-valuenow") == over.get_attribute("aria-valuemax")


def test_a_click_on_a_line_chooses_its_policy(opened: Opened) -> None:
    page = opened("replay").page
    over = page.locator("#spent .u-over")
    over.scroll_into_view_if_needed()
    end = """() => {
        const { plot } = document.querySelector("#spent");
        const line = plot.series.findIndex(each => each.label?.textContent === "claude-code");
        return [plot.valToPos(plot.data[0].at(-1), "x"), plot.valToPos(plot.data[line].at(-1), "y")];
    }"""
    x, y = page.evaluate(end)
    box = over.bounding_box()
    page.mouse.move(box["x"] + x - 9, box["y"] + y)
    page.mouse.move(box["x"] + x - 2, box["y"] + y)
    page.mouse.down()
    page.mouse.up()
    assert page.input_value("#policy") == "claude-code"
    assert page.inner_text("#layers-title").endswith("claude-code")


def test_the_values_of_a_chart_are_there_as_a_table(opened: Opened) -> None:
    page = opened("replay").page
    page.select_option(
        "#session", label=page.locator("#session option", has_text="session-0003").inner_text()
    )
    page.locator("#views summary").click()
    rows = page.locator("#views details tbody tr")
    assert rows.first.locator("td").all_inner_texts()[:2] == ["call 1", "20,000"]
    page.locator("#views .more").click()
    assert rows.count() == 120
    assert rows.nth(50).locator("td").first.inner_text() == "call 51 · summary: 34.7K → 20K"


@NAMES
def test_a_name_that_looks_like_markup_is_shown_and_not_obeyed(opened: Opened, name: str) -> None:
    tab = opened(name)
    tab.page.fill("#sessions input", "onerror")
    assert tab.page.locator("#sessions tbody tr").count() == 1
    assert "</script><img src=x" in tab.page.inner_text("#sessions tbody")
    assert tab.page.locator("img").count() == 0


@NAMES
def test_a_report_of_nothing_opens(opened: Opened, name: str) -> None:
    page = opened(f"{name} of nothing").page
    assert page.is_visible("h1")
    assert page.is_visible("#arm, #one-session") is False


def test_thousands_of_sessions_open_fast(opened: Opened) -> None:
    tab = opened("audit of many")
    took = tab.number("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert took < 5_000
    assert 0 < tab.number("document.querySelector('#days').plot.data[0].length") < 5_000 / 28


@pytest.mark.parametrize("size", [(1_280, 900), (390, 844)], ids=["desk", "phone"])
def test_a_project_opens_into_sessions_and_a_session_into_its_calls_and_misses(
    opened: Opened, tmp_path: Path, size: tuple[int, int]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    from lowwater.lab.audit.files import audit_files
    from lowwater.lab.audit.report import report_of
    from tests.cli.test_audit_command import claude_code

    first = claude_code("one", calls=30)
    again = claude_code("two", calls=50).replace("/home/shop", "/home/bakery")
    (tmp_path / "one.jsonl").write_text(first)
    (tmp_path / "two.jsonl").write_text(again)
    report = report_of(list(audit_files([tmp_path], day_of=day_of)))
    path = tmp_path / "page.html"
    path.write_text(audit_page(report), encoding="utf-8")
    tab = opened("audit")
    tab.page.set_viewport_size({"width": size[0], "height": size[1]})
    tab._address = path.as_uri()
    tab.page.goto(tab._address)
    page = tab.page
    page.locator("#projects button", has_text="home/bakery").click()
    assert "Sessions of home/bakery" in page.inner_text("#sessions-title")
    assert page.locator("#sessions button.link").all_inner_texts() == ["two"]
    page.locator("#sessions-title button").click()
    assert page.locator("#sessions button.link").count() == 2
    page.locator("#sessions button.link", has_text="one").press("Enter")
    assert page.inner_text("#session-facts").startswith("30 calls · 0 compactions")
    assert page.evaluate("document.activeElement.id") == "session-title"
    assert page.locator("#calls canvas").count() == page.locator("#dollars canvas").count() == 1
    held = page.evaluate("document.querySelector('#held').plot.data")
    billed = page.evaluate("document.querySelector('#calls').plot.data")
    assert held[1] == billed[1], "the kinds add up to the prompts that were billed"
    page.locator("#held .u-over").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.inner_text("#call h3") == "Call 30"
    assert f"{billed[1][-1]:,} tokens" in page.inner_text("#call dl")
    page.get_by_role("button", name="Earlier").click()
    assert page.inner_text("#call h3") == "Call 29"
    assert page.locator("#call tbody tr").count() == 5
    page.locator("#held .u-over").click(position={"x": 3, "y": 20})
    assert page.inner_text("#call h3") == "Call 1"
    page.locator("#session").select_option(label="two · 50 calls")
    assert page.inner_text("#call") == ""
    assert page.inner_text("#session-facts").startswith("50 calls")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []
    assert tab.wrong == []
