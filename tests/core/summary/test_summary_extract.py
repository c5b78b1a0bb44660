"""What the extractive summarizer finds in a transcript (specification C3): computed from calls, nothing invented."""

import pytest

from lowwater.core.messages import Message, Text
from lowwater.core.summary.template import Section


def test_goal_is_what_was_asked_first_and_what_was_asked_last(talk, summarised):
    talk.user("Move the session store to PostgreSQL.").says("Done, it is moved.")
    talk.user("yes").says("Good.")
    talk.user("Now write the migration guide for operators.").says("The guide is written.")
    assert summarised(talk.request()).of(Section.GOAL) == (
        'First asked: "Move the session store to PostgreSQL."',
        'Asked last: "Now write the migration guide for operators."',
    )


@pytest.mark.parametrize(
    "sentence",
    [
        "Do not touch the public API.",
        "Never push to main.",
        "You must keep Python 3.11 working.",
        "I prefer small commits.",
        "Use httpx instead of requests.",
        "Only change files under src/auth.",
        "Do it without adding dependencies.",
        "不要修改数据库结构，必须保持兼容。",
        "テストを必ず実行してください。",
    ],
    ids=["do not", "never", "must", "prefer", "instead", "only", "without", "Chinese", "Japanese"],
)
def test_constraints_are_what_the_user_said_word_for_word(talk, summarised, sentence):
    talk.user(f"Refactor the login flow of the service.\n{sentence}").says("I will.")
    assert summarised(talk.request()).of(Section.CONSTRAINTS) == (f'"{sentence}"',)


@pytest.mark.parametrize(
    "sentence",
    ["I don't know where it fails.", "Why don't we see the log?", "It has been like this for a while."],
    ids=["ignorance", "question", "statement"],
)
def test_other_sentences_are_no_constraints(talk, summarised, sentence):
    talk.user(f"Look at the login flow. {sentence}").says("I will.")
    assert summarised(talk.request()).of(Section.CONSTRAINTS) == ()


def test_files_are_counted_from_the_calls(talk, summarised):
    talk.user("Fix the parser in this repository.")
    talk.calls("Read", {"file_path": "/repo/app/src/parse.py", "offset": 1, "limit": 100}, "text")
    talk.calls("Read", {"file_path": "/repo/app/src/parse.py", "offset": 80, "limit": 121}, "text")
    talk.calls(
        "Edit", {"file_path": "/repo/app/src/parse.py", "old_string": "a", "new_string": "def parse_all():"}
    )
    talk.calls("Edit", {"file_path": "/repo/app/src/parse.py", "old_string": "b", "new_string": "c"})
    talk.calls(
        "Write", {"file_path": "/repo/app/tests/test_parse.py", "content": "x"}, "File created successfully"
    )
    talk.calls("Read", {"file_path": "/repo/app/README.md"}, "text")
    talk.calls(
        "Edit",
        {"file_path": "/repo/app/gone.py", "old_string": "a", "new_string": "b"},
        "Error: no",
        failed=True,
    )
    assert summarised(talk.request()).of(Section.FILES) == (
        "Paths are relative to `/repo/app`.",
        "`tests/test_parse.py` · created",
        "`src/parse.py` · edited 2×, read 2× (lines 1–200) · defines `parse_all`",
        "`README.md` · read",
    )


def test_patches_and_shell_reads_touch_files_too(talk, summarised):
    patch = "*** Begin Patch\n*** Add File: lib/new.go\n+func Fresh() {}\n*** Update File: lib/old.go\n-a\n+b\n*** End Patch"
    talk.user("Split the library in two files.")
    talk.calls("apply_patch", {"input": patch}, "Done")
    talk.calls("exec_command", {"cmd": "sed -n '1,80p' lib/old.go", "workdir": "/work/api"}, "package lib")
    assert set(summarised(talk.request()).of(Section.FILES)) == {
        "`lib/new.go` · created · defines `Fresh`",
        "`lib/old.go` · edited",
        "`/work/api/lib/old.go` · read (lines 1–80)",
    }


@pytest.mark.parametrize(
    ("command", "output", "told"),
    [
        (
            "pytest -q",
            "FAILED tests/test_a.py::test_b\n= 1 failed, 3 passed in 0.2s =",
            "failed (1 failed, 3 passed): tests/test_a.py::test_b",
        ),
        ("npx jest", "Tests:       1 failed, 2 passed, 3 total", "failed (1 failed, 2 passed, 3 total)"),
        (
            "go test ./...",
            "ok  \tx/a\t0.1s\n--- FAIL: TestB (0.00s)\nFAIL\tx/b\t0.2s",
            "failed (1 package ok, 1 failed): TestB",
        ),
        ("cargo test", "test result: ok. 5 passed; 0 failed; 0 ignored", "passed (5 passed; 0 failed)"),
        ("bun test", " 12 pass\n 0 fail\n", "passed (12 pass 0 fail)"),
        ("npm test", "  7 passing (12ms)\n", "passed (7 passing (12ms))"),
        ("python -m unittest", "Ran 4 tests in 0.1s\n\nOK", "passed (Ran 4 tests in 0.1s OK)"),
        ("make test", "", "passed"),
    ],
    ids=["pytest", "jest", "go", "cargo", "bun", "mocha", "unittest", "silent"],
)
def test_commands_have_the_outcome_their_runner_printed(talk, summarised, command, output, told):
    talk.user("Run the tests for me please.").runs(f"cd /repo && {command} 2>&1 | tail -40", output)
    assert f"Test: `{command}` · one run, {told}" in summarised(talk.request()).of(Section.TOOLS)


def test_an_error_is_blocked_until_its_command_succeeds(talk, summarised):
    talk.user("Make the build green again.")
    talk.runs("npx tsc --noEmit", "src/a.ts(1,2): error TS2304: Cannot find name 'Foo'.", failed=True)
    failing = "`npx tsc --noEmit` fails: src/a.ts(1,2): error TS2304: Cannot find name 'Foo'."
    assert summarised(talk.request()).of(Section.BLOCKED) == (failing,)
    talk.calls("Edit", {"file_path": "src/a.ts", "old_string": "a", "new_string": "b"}).runs(
        "npx tsc --noEmit", ""
    )
    after = summarised(talk.request())
    assert after.of(Section.BLOCKED) == ()
    assert after.of(Section.RESOLVED) == (
        "No longer failing: `npx tsc --noEmit`: src/a.ts(1,2): error TS2304: Cannot find name 'Foo'.",
    )


def test_code_that_mentions_errors_is_no_error(talk, summarised):
    talk.user("Show me how errors are made here.")
    talk.runs("cat errors.go", 'return fmt.Errorf("error: %w", err)\nraise ValueError("no")')
    talk.runs("go vet ./...", '// error: only a comment\n\treturn errors.New("fatal: no")')
    assert summarised(talk.request()).of(Section.BLOCKED) == ()


def test_of_a_traceback_the_deepest_frame_and_the_error_stay(talk, summarised):
    trace = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    b()\n'
        '  File "b.py", line 7, in b\n    raise KeyError("k")\nKeyError: \'k\''
    )
    talk.user("Run the script once more.").runs("python a.py", trace, failed=True)
    assert summarised(talk.request()).of(Section.BLOCKED) == (
        "`python a.py` fails: File \"b.py\", line 7, in b | KeyError: 'k'",
    )


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (
            "TodoWrite",
            {
                "todos": [
                    {"content": "read", "status": "completed"},
                    {"content": "write", "status": "in_progress"},
                    {"content": "test", "status": "pending"},
                ]
            },
        ),
        (
            "update_plan",
            {
                "plan": [
                    {"step": "read", "status": "completed"},
                    {"step": "write", "status": "in_progress"},
                    {"step": "test", "status": "pending"},
                ]
            },
        ),
    ],
    ids=["TodoWrite", "update_plan"],
)
def test_the_task_list_tool_gives_done_in_progress_and_remaining_exactly(talk, summarised, tool, arguments):
    talk.user("Port the module to Rust.").calls(
        "TodoWrite", {"todos": [{"content": "older", "status": "pending"}]}
    )
    summary = summarised(talk.calls(tool, arguments).request())
    assert summary.of(Section.DONE) == ("read",)
    assert "write" in summary.of(Section.IN_PROGRESS)
    assert summary.of(Section.REMAINING) == ("test",)


def test_tasks_that_are_created_and_updated_one_by_one_are_followed(talk, summarised):
    talk.user("Port the module to Rust.")
    talk.calls("TaskCreate", {"subject": "read", "description": "d"}, "Task #1 created successfully: read")
    talk.calls("TaskCreate", {"subject": "write", "description": "d"}, "Task #2 created successfully: write")
    talk.calls("TaskUpdate", {"taskId": "1", "status": "completed"}).calls(
        "TaskUpdate", {"taskId": "2", "status": "in_progress"}
    )
    summary = summarised(talk.request())
    assert summary.of(Section.DONE) == ("#1 read",)
    assert "#2 write" in summary.of(Section.IN_PROGRESS)


def test_decisions_are_the_assistants_own_sentences(talk, summarised):
    talk.user("Why is the login slow on Mondays?")
    talk.runs(
        "cat log.txt",
        "…",
        text="The root cause is that `SessionCache` is rebuilt on every request. Let me read on.",
    )
    talk.says("I decided to keep `SessionCache` in memory instead of Redis.")
    decisions = summarised(talk.request()).of(Section.DECISIONS)
    assert "The root cause is that `SessionCache` is rebuilt on every request." in decisions
    assert not any("Let me read on" in item for item in decisions)


def test_a_question_is_resolved_with_its_answer(talk, summarised):
    talk.user("Which port does the gateway listen on?").says("The gateway listens on port 8642 by default.")
    assert summarised(talk.request()).of(Section.RESOLVED) == (
        '"Which port does the gateway listen on?" → The gateway listens on port 8642 by default.',
    )


def test_a_short_approval_is_kept_with_what_it_approves(talk, summarised):
    talk.user("Clean up the branches of this repository.").says(
        "Shall I delete the merged branch feat/login-cache?"
    )
    talk.user("yes").says("Deleted feat/login-cache.")
    assert 'Shall I delete the merged branch feat/login-cache? The user: "yes"' in summarised(
        talk.request()
    ).of(Section.RESOLVED)


def test_an_ask_without_any_answer_is_pending(talk, summarised):
    talk.user("Add a retry to the uploader.").says("Added.").user("Also document the retry in the README.")
    assert summarised(talk.request()).of(Section.PENDING) == ('"Also document the retry in the README."',)


def test_a_question_to_the_user_without_answer_is_pending(talk, summarised):
    talk.user("Add a retry to the uploader.").says("How many attempts should the uploader make at most?")
    assert summarised(talk.request()).of(Section.PENDING) == (
        'Waiting for the user\'s answer to: "How many attempts should the uploader make at most?"',
    )
    answer = Message(role="user", parts=(Text(text="Three."),))
    assert summarised(talk.request(newest_user=answer)).of(Section.PENDING) == ()


def test_work_without_a_closing_answer_is_in_progress(talk, summarised):
    talk.user("Add a retry to the uploader.").runs(
        "ls", "upload.py", text="I am adding the retry to `upload.py` now."
    )
    assert summarised(talk.request()).of(Section.IN_PROGRESS) == (
        'Working on: "Add a retry to the uploader."',
        "Last said: I am adding the retry to `upload.py` now.",
    )


def test_commits_and_pull_requests_are_done(talk, summarised):
    talk.user("Commit and open a pull request.")
    talk.runs("git commit -m 'Retry uploads'", "[feat/retry 1a2b3c4] Retry uploads\n 1 file changed")
    talk.runs("gh pr create --title 'Retry uploads'", "https://github.com/a/b/pull/17")
    assert summarised(talk.request()).of(Section.DONE) == (
        "Committed `1a2b3c4` on `feat/retry`: Retry uploads",
        "Opened https://github.com/a/b/pull/17: Retry uploads",
    )


def test_what_other_tools_did_is_done_and_what_they_looked_up_is_context(talk, summarised):
    talk.user("Cancel my booking please.")
    talk.calls("get_booking", {"booking_id": "HATHAT"}, '{"status": "open"}')
    talk.calls("cancel_booking", {"booking_id": "HATHAT"}, '{"status": "cancelled"}')
    summary = summarised(talk.request())
    assert summary.of(Section.DONE) == ('`cancel_booking` booking_id=HATHAT → {"status": "cancelled"}',)
    assert summary.of(Section.CONTEXT) == ('`get_booking` booking_id=HATHAT → {"status": "open"}',)


def test_names_in_what_was_written_come_last(talk, summarised):
    talk.user("Write the limiter for me please.")
    talk.calls(
        "Write", {"file_path": "/r/limits/bucket.py", "content": "bucket_size = read_limit(user_quota)"}
    )
    talk.says("The limiter uses `token_bucket_v2`.")
    *_, last = summarised(talk.request()).of(Section.CONTEXT)
    assert last == "Names in what was written to `bucket.py`: bucket_size, read_limit, user_quota"
