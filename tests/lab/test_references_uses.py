import gc
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.messages import ToolCall
from lowwater.lab.references.uses import Occurrences, find_words, uses_of
from tests.lab.reference_sessions import answered, asked, call, said

SESSION = [
    asked("look at user_named"),
    said("", call("1", '{"command": "run arg_named"}')),
    answered("1", "only_here user_named arg_named twice_named"),
    said("", call("2", '{"command": "again"}')),
    answered("2", "twice_named"),
    said("so only_here, user_named, arg_named and twice_named", call("3", '{"command": "cat only_here"}')),
]


def kinds_of(text, *, from_result):
    uses = uses_of([said("", call("1")), answered("1", from_result), said(text)])
    return [(use.kind, use.text) for use in uses]


def test_a_use_is_what_one_result_alone_had_said_and_counts_once():
    (use,) = uses_of(SESSION)
    assert (use.kind, use.text, use.number, use.turn, use.later) == ("identifier", "only_here", 6, 3, 2)
    assert (use.origin.number, use.origin.turn, use.origin.call.id) == (3, 1, "1")
    assert use.origin.text.startswith("only_here")


def test_each_kind_of_reference_is_told_from_the_others():
    result = (
        'wrote src/app.py with parse_all, 48213 lines, "could not bind" and\nValueError: bad port in config\n'
    )
    said_of_it = f'It wrote src/app.py, parse_all, 48213 and "could not bind"\n{result.splitlines()[1]}'
    assert set(kinds_of(said_of_it, from_result=result)) == {
        ("path", "src/app.py"),
        ("identifier", "parse_all"),
        ("identifier", "ValueError"),
        ("number", "48213"),
        ("quote", "could not bind"),
        ("error", "ValueError: bad port in config"),
    }


def test_in_arguments_quotation_marks_are_syntax():
    answer = said("", call("2", '{"command": "echo \\"could not bind\\" in_args"}'))
    uses = uses_of([said("", call("1")), answered("1", '"could not bind" in_args'), answer])
    assert [use.text for use in uses] == ["in_args"]


def test_arguments_that_are_no_json_are_read_as_text():
    broken = ToolCall(id="2", name="run", arguments='{"command": "cat from_result')
    uses = uses_of([said("", call("1")), answered("1", "from_result"), said("", broken)])
    assert [use.text for use in uses] == ["from_result"]


def test_what_only_a_user_said_is_no_use_of_a_result():
    assert uses_of([asked("see some_name"), said("some_name it is")]) == []


def test_a_result_without_its_call_is_an_origin_all_the_same():
    (use,) = uses_of([answered("lost", "some_name"), said("some_name it is")])
    assert (use.origin.number, use.origin.call.name) == (1, "")


LISTING = "  1204→def one():\n  1205→    return 4821\n\nsrc/app.py:1311:4: too long\nsrc/app.py-1312-x = 0"


def test_line_numbers_are_no_uses_and_values_are():
    said_of_it = "Lines 1204 to 1205 return 4821, and 1311 and 1312 are too long."
    assert kinds_of(said_of_it, from_result=LISTING) == [("number", "4821")]
    assert ("number", "1205") in kinds_of(said_of_it, from_result=f"{LISTING}\n1205 of 1206 passed")


def test_page_sizes_and_offsets_are_no_uses_and_other_arguments_are():
    asked_for = '{"offset": 7001, "limit": 7002, "port": 7003, "command": "sed -n \'7004,7005p\' a; head -7006 b; kill 7007"}'
    answer = said("", call("2", asked_for))
    numbers = " ".join(f"value {number}," for number in range(7001, 7008))
    uses = uses_of([said("", call("1")), answered("1", numbers), answer])
    assert [use.text for use in uses] == ["7003", "7007"]


def test_a_reference_counts_only_as_whole_words():
    assert find_words("1204", "51204 and 12045") == -1
    assert find_words("1204", "51204 and 1204") == 10
    assert find_words("-->", "a-->b") == 1


@given(
    st.lists(st.text(alphabet="ab_ ./-1", max_size=12), max_size=6), st.text(alphabet="ab_./-1 ", min_size=1)
)
def test_occurrences_are_those_that_reading_every_text_finds(texts, wanted):
    found = list(Occurrences(texts, [wanted]).of(wanted))
    assert found == [index for index, text in enumerate(texts) if find_words(wanted, text) >= 0]


def long_session(calls):
    messages = []
    for at in range(calls):
        lines = "\n".join(
            f"{at}: def name_{at}_{line}(value_{line % 7}): return {at * line}" for line in range(40)
        )
        messages.append(
            said(f"on with name_{at - 9}_3 and name_{at - 1}_8", call(f"c{at}", f'{{"at": {at}}}'))
        )
        messages.append(answered(f"c{at}", lines))
    return messages


def seconds_for(calls, *, runs):
    """The fastest of several runs: what a run takes beyond that is the machine's, not the session's."""
    messages = long_session(calls)
    took = []
    for _ in range(runs):
        gc.collect()
        started = process_time()
        assert len(uses_of(messages)) > calls
        took.append(process_time() - started)
    return min(took)


def test_a_session_of_hundreds_of_calls_is_read_about_as_fast_per_call_as_a_short_one():
    assert seconds_for(600, runs=2) < 3 * 6 * seconds_for(100, runs=5)
