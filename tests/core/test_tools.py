"""Tools are told by what they do, whatever an agent calls them."""

import pytest

from lowwater.core.messages import ToolCall
from lowwater.core.proposals import Preset
from lowwater.core.tools import bare_name, class_of, classify, path_of, subject_of


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("read_file", "read"),
        ("Read", "read"),
        ("mcp__fs__read_file", "read"),
        ("functions.read_file", "read"),
        ("fs:read_file", "read"),
        ("TodoWrite", "todo"),
        ("todo", "todo"),
        ("skill_view", "skill"),
        ("apply_patch", "write"),
        ("exec_command", "shell"),
        ("Grep", "search"),
        ("web_fetch", "web"),
        ("Task", "agent"),
        ("AskUserQuestion", "clarify"),
        ("get_reservation_details", "other"),
        ("", "other"),
        ("__", "other"),
        ("読む", "other"),
    ],
)
def test_a_tool_is_told_by_its_name_in_any_spelling(tool: str, kind: str) -> None:
    assert classify(tool) == kind


def test_a_name_is_bare_without_its_server() -> None:
    assert [bare_name(name) for name in ("mcp__docs__search", "a.b", "plain")] == ["search", "b", "plain"]


@pytest.mark.parametrize(
    ("command", "kind"), [("view", "read"), ("str_replace", "write"), ("create", "write")], ids=str
)
def test_an_editor_that_views_is_a_read(command: str, kind: str) -> None:
    call = ToolCall(
        id="1", name="str_replace_based_edit_tool", arguments=f'{{"command": "{command}", "path": "/a.py"}}'
    )
    assert class_of(call) == kind


@pytest.mark.parametrize(
    ("arguments", "subject", "path"),
    [
        ('{"file_path": "/a.py", "limit": 5}', "/a.py", "/a.py"),
        ('{"command": ["ls", "-la"]}', "ls -la", ""),
        ('{"path": "  ", "query": "tide"}', "tide", ""),
        ('{"unheard_of": 1}', '{"unheard_of": 1}', ""),
        ("not json", "not json", ""),
        ('{"path": null}', '{"path": null}', ""),
        ("[" * 2_000, "[" * 2_000, ""),
    ],
    ids=["path", "command as a list", "blank path", "unknown", "no json", "null", "too deep"],
)
def test_what_a_call_is_about(arguments: str, subject: str, path: str) -> None:
    call = ToolCall(id="1", name="t", arguments=arguments)
    assert subject_of(call) == subject
    assert path_of(call) == path


SEED = Preset(never_prune=("clarify", "memory", "skill_view", "todo", "read_file"))


@pytest.mark.parametrize(
    "tool",
    ["clarify", "memory", "skill_view", "todo", "read_file", "Read", "TodoWrite", "mcp__fs__read_file"],
)
def test_d_never_prune_counts_by_name_and_by_class(tool: str) -> None:
    assert SEED.protects(tool)


@pytest.mark.parametrize("tool", ["terminal", "Bash", "mcp__fs__write_file", "get_weather", ""])
def test_d_other_tools_are_pruned(tool: str) -> None:
    assert not SEED.protects(tool)


def test_d_a_file_that_can_be_read_again_may_go_outside_the_seed_presets() -> None:
    assert not Preset().protects("read_file")
    assert Preset().protects("TodoWrite")


def test_a_listed_name_of_no_class_protects_itself_on_any_server_and_nothing_else() -> None:
    preset = Preset(never_prune=("get_reservation",))
    assert preset.protects("get_reservation")
    assert preset.protects("mcp__airline__get_reservation")
    assert not preset.protects("get_user")
