"""What sessions show of later uses is shared by all sessions of one library, as counts only."""

from lowwater.core.mechanisms.reuse import Experience
from lowwater.session.dependencies import SharedExperience
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater


def test_a_new_session_begins_with_what_earlier_ones_of_the_library_showed() -> None:
    shared = SharedExperience()
    lowwater = Lowwater(model="claude-sonnet-4-5", store="memory:")
    state = internals(lowwater.session("a")).shared.state
    assert shared.begun(state) is state
    shared.learn(Experience(), Experience(expected=1.0, observed=40.0, upto=9))
    begun = shared.begun(state).experience
    assert begun.factor > 1
    assert (begun.expected, begun.observed, begun.upto) == (0, 0, 0)
    shared.learn(Experience(expected=5.0, observed=1.0), Experience())  # a reset takes nothing back
    assert shared.begun(state).experience == begun
