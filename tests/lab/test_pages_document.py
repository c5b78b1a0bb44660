"""A page is one file: well-formed, with nothing to load, and with names that stay names."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from lowwater.lab.pages.audit import audit_page
from lowwater.lab.pages.replay import replay_page
from tests.lab.report_samples import HOSTILE, MADE, PageReader, audit_of, replay_of, session_result

MOST_BYTES = 300_000


def audited_page(name: str = "") -> str:
    return audit_page(audit_of(4, names={1: name}), made_at=MADE)


def replayed_page(name: str = "") -> str:
    report, timelines = replay_of(session_result(1, name=name), session_result(2))
    return replay_page(report, timelines=timelines, made_at=MADE)


PAGES = pytest.mark.parametrize("page", [audited_page, replayed_page], ids=["audit", "replay"])


@PAGES
def test_every_element_is_closed_and_every_id_is_there_once(page) -> None:
    found = PageReader(page())
    ids = [attributes["id"] for _, attributes in found.elements if attributes.get("id")]
    assert len(ids) == len(set(ids)) > 5


@PAGES
def test_nothing_refers_to_anything_outside_the_file(page) -> None:
    found = PageReader(page())
    for tag, attributes in found.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "img"}
        assert not {"src", "srcset", "data", "action", "style"} & set(attributes), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert attributes.get("href") is None
    assert "Copyright (c) 2022 Leon Sorokin" in found.texts["script"]
    assert "@import" not in found.texts["style"]
    assert re.findall(r"url\((?!#)", found.texts["style"]) == []
    assert set(re.findall(r"https?://[^\s\"']+", page())) == {"https://github.com/leeoniya/uPlot"}


@PAGES
def test_browsers_are_told_to_run_this_script_only_and_to_load_nothing(page) -> None:
    found = PageReader(page())
    policy = next(
        attributes["content"] or "" for _, attributes in found.elements if "http-equiv" in attributes
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name in ("style", "script"):
        digest = b64encode(sha256(found.texts[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


@PAGES
def test_a_name_that_looks_like_markup_stays_text(page) -> None:
    found = PageReader(page(HOSTILE))
    plain = PageReader(page("a plain name"))
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in plain.elements]
    assert "<" not in found.data
    assert ">" not in found.data


@PAGES
def test_a_page_without_its_data_is_small(page) -> None:
    text = page()
    assert len(text.encode()) - len(PageReader(text).data.encode()) < MOST_BYTES


@PAGES
def test_the_same_report_gives_the_same_page(page) -> None:
    assert page() == page()


@PAGES
def test_the_page_says_when_it_was_made_with_which_prices_and_what_is_estimated(page) -> None:
    text = page()
    assert "Made 2026-11-15" in text
    assert re.search(r"claude-opus-4-5</td>.*?\$5\.00.*?20\d\d-\d\d-\d\d</td>", text)
    assert "Estimated" in text
