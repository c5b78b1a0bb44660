"""A result that a later one repeats, replaces or makes stale points to it."""

from typing import Any

import pytest

from lowwater.core.mechanisms import dedupe
from lowwater.core.messages import ToolCall
from lowwater.core.policies.policy import OWN, RUNWAY, SEED
from lowwater.core.proposals import Preset
from lowwater.core.tools import FileAccess, file_access
from lowwater.core.view import Item
from lowwater.testing.views import Script, asked, lines, making, offer_of

FILE = lines(60, "code")


def deduped(items: list[Item], preset: Preset = OWN, **zones: Any) -> list[Item]:
    proposal = offer_of(dedupe.NAME, asked(items, preset, **zones))
    return list(items) if proposal is None else dedupe.apply(items, proposal, making(preset=preset))


def said(items: list[Item]) -> list[str]:
    """Return how each result that was replaced is said to be dispensable, in the order of the view."""
    shown = [result.text for item in items for result in item.message.results]
    return [text.split(" · ")[3] for text in shown if "chars elided" in text]


def edited(text: str, share: float) -> str:
    """Return the text with this share of its lines changed, spread evenly."""
    own = text.splitlines()
    step = round(1 / share)
    return "\n".join(f"{line} (changed)" if at % step == 0 else line for at, line in enumerate(own))


def test_an_exact_copy_points_to_the_newest_message_that_has_it() -> None:
    script = Script().user("go")
    for at in range(3):
        script.calls("bash", {"command": f"cat {at}"}, FILE)
    items = script.calls("bash", {}, "ok").items()
    after = deduped(items)
    assert said(after) == ["repeated in lw:7", "repeated in lw:7"]
    assert after[6] is items[6]


def test_a_copy_in_the_tail_is_a_newer_copy_too() -> None:
    items = (
        Script()
        .user("go")
        .calls("bash", {"command": "a"}, FILE)
        .calls("bash", {"command": "b"}, FILE)
        .items()
    )
    after = deduped(items)
    assert said(after) == ["repeated in lw:5"]
    assert after[3:] == items[3:]


def test_a_copy_in_the_head_or_tail_stays() -> None:
    script = (
        Script()
        .user("go")
        .calls("bash", {}, FILE)
        .says("Hm.")
        .calls("bash", {}, FILE)
        .calls("bash", {}, FILE)
    )
    items = script.items()
    assert deduped(items, first=3, last=4) == items


@pytest.mark.parametrize(("share", "found"), [(0.05, True), (0.4, False)], ids=["5 % edited", "40 % edited"])
def test_near_copies_are_found_and_others_are_not(share: float, found: bool) -> None:
    script = Script().user("go").calls("bash", {"command": "pytest"}, FILE)
    script.calls("bash", {"command": "pytest -x"}, edited(FILE, share)).calls("bash", {}, "ok")
    assert said(deduped(script.items())) == (["almost the same in lw:5"] if found else [])


def test_results_of_different_tools_are_no_near_copies() -> None:
    script = Script().user("go").calls("bash", {"command": "git log"}, FILE)
    script.calls("grep", {"pattern": "x"}, edited(FILE, 0.05)).calls("bash", {}, "ok")
    assert said(deduped(script.items())) == []


def test_no_pointer_leads_to_a_result_that_is_replaced_itself() -> None:
    first, second = FILE, edited(FILE, 0.05)
    third = edited(second, 0.06)
    script = Script().user("go")
    for text in (first, second, third):
        script.calls("bash", {"command": text[-9:]}, text)
    after = deduped(script.calls("bash", {}, "ok").items())
    assert "almost the same in lw:7" in said(after)
    assert "almost the same in lw:5" not in said(after)


@pytest.mark.parametrize(
    ("earlier", "later", "how"),
    [
        ({}, {}, ["read again in lw:5"]),
        ({"offset": 1, "limit": 60}, {"limit": 60, "offset": 1}, ["read again in lw:5"]),
        ({"offset": 1, "limit": 60}, {}, ["read again in lw:5"]),
        ({}, {"offset": 1, "limit": 60}, []),
        ({"offset": 1, "limit": 60}, {"offset": 61, "limit": 60}, []),
        ({"view_range": [1, 60]}, {"view_range": [1, 61]}, []),
        ({"recursive": False}, {"encoding": "utf-8"}, ["read again in lw:5"]),
    ],
    ids=[
        "whole file",
        "same range",
        "range, then all",
        "all, then range",
        "next range",
        "view range",
        "no range",
    ],
)
def test_a_file_read_again_in_the_same_range_or_whole_supersedes(
    earlier: dict[str, object], later: dict[str, object], how: list[str]
) -> None:
    script = Script().user("go").calls("Read", {"file_path": "/a.py", **earlier}, FILE)
    script.calls("Read", {"file_path": "/a.py", **later}, lines(60, "other")).calls("bash", {}, "ok")
    assert said(deduped(script.items())) == how


def test_another_file_supersedes_nothing() -> None:
    script = Script().user("go").calls("Read", {"file_path": "/a.py"}, FILE)
    script.calls("Read", {"file_path": "/b.py"}, lines(60, "other")).calls(
        "Edit", {"file_path": "/c.py"}, "ok"
    )
    assert said(deduped(script.calls("bash", {}, "ok").items())) == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"file_path": "/a.py", "old_string": "x", "new_string": "y"}),
        ("write_file", {"path": "/a.py", "content": "new"}),
        ("str_replace_based_edit_tool", {"command": "insert", "path": "/a.py"}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: /a.py\n@@\n-x\n+y\n*** End Patch"}),
        ("shell", {"command": ["apply_patch", "*** Begin Patch\n*** Update File: /a.py\n*** End Patch"]}),
    ],
    ids=["edit", "write", "editor", "patch", "patch in a shell"],
)
def test_a_file_changed_later_makes_its_reading_stale_but_leaves_a_digest(
    tool: str, arguments: dict[str, object]
) -> None:
    code = "\n".join(f"def handler_{at}(request): return parse_{at}(request)" for at in range(60))
    script = Script().user("go").calls("Read", {"file_path": "/a.py"}, code)
    items = script.calls(tool, arguments, "done").calls("bash", {}, "ok").items()
    after = deduped(items)
    if tool == "shell":
        # A list of words holds the patch; its text is found in the arguments as they were written.
        assert said(after) in ([], ["changed in lw:5"])
        return
    assert said(after) == ["changed in lw:5"]
    assert "handler_3" in after[2].message.results[0].text
    assert after[2].tokens < 0.3 * items[2].tokens


def test_a_change_that_failed_changes_nothing() -> None:
    script = Script().user("go").calls("Read", {"file_path": "/a.py"}, FILE)
    script.calls("Edit", {"file_path": "/a.py"}, "Error: old_string was not found").calls("bash", {}, "ok")
    assert said(deduped(script.items())) == []
    marked = Script("anthropic").user("go").calls("Read", {"file_path": "/a.py"}, FILE)
    marked.calls("Edit", {"file_path": "/a.py"}, "old_string was not there", failed=True).calls(
        "bash", {}, "ok"
    )
    assert said(deduped(marked.items())) == []


def test_an_editor_that_views_a_file_does_not_change_it() -> None:
    tool = "str_replace_based_edit_tool"
    script = Script().user("go").calls(tool, {"command": "view", "path": "/a.py"}, FILE)
    script.calls(tool, {"command": "view", "path": "/a.py"}, lines(60, "new")).calls("bash", {}, "ok")
    assert said(deduped(script.items())) == ["read again in lw:5"]


def test_errors_are_not_deduplicated_away() -> None:
    script = Script("anthropic").user("go").calls("bash", {"command": "make"}, FILE, failed=True)
    script.calls("bash", {"command": "make"}, edited(FILE, 0.05)).calls("bash", {"command": "make"}, FILE)
    script.calls("bash", {}, "ok")
    after = deduped(script.items())
    assert after[2].message.results[0].text == FILE


def test_never_prune_results_are_not_deduplicated() -> None:
    script = Script().user("go").calls("Read", {"file_path": "/a.py"}, FILE)
    items = script.calls("Read", {"file_path": "/a.py"}, FILE).calls("bash", {}, "ok").items()
    assert said(deduped(items, SEED)) == []
    assert said(deduped(items, OWN)) == ["repeated in lw:5"]


def test_the_plain_presets_leave_no_digest() -> None:
    script = Script().user("go").calls("cat", {"path": "/a.py"}, FILE)
    script.calls("Edit", {"file_path": "/a.py"}, "done").calls("bash", {}, "ok")
    preset = Preset(plain_placeholders=True, elide_limit_chars=200)
    assert "\n" not in deduped(script.items(), preset)[2].message.results[0].text
    assert RUNWAY.plain_placeholders


def test_deduplicating_twice_is_deduplicating_once() -> None:
    script = Script().user("go")
    for at in range(4):
        script.calls("bash", {"command": str(at)}, edited(FILE, 0.05) if at % 2 else FILE)
    once = deduped(script.calls("bash", {}, "ok").items())
    assert offer_of(dedupe.NAME, asked(once, OWN)) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "access"),
    [
        ("Read", '{"file_path": "./a.py"}', FileAccess(paths=("a.py",), changes=False)),
        ("cat", '{"path": "a", "limit": 5}', FileAccess(paths=("a",), changes=False, part="limit=5")),
        ("cat", '{"path": "a", "limit": null}', FileAccess(paths=("a",), changes=False)),
        ("Write", '{"file_path": "a", "line": 5}', FileAccess(paths=("a",), changes=True)),
        (
            "apply_patch",
            "*** Begin Patch\n*** Add File: a\n*** Delete File: b\n*** End Patch",
            FileAccess(paths=("a", "b"), changes=True),
        ),
        ("bash", '{"command": "cat a.py"}', None),
        ("Read", "{}", None),
        ("Read", "no json", None),
    ],
    ids=["read", "part", "no part", "write", "patch", "shell", "no path", "no json"],
)
def test_what_a_call_does_to_files(tool: str, arguments: str, access: FileAccess | None) -> None:
    assert file_access(ToolCall(id="1", name=tool, arguments=arguments)) == access
