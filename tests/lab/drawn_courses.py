"""Small courses drawn by Hypothesis, and a price sheet in round numbers for them."""

from hypothesis import strategies as st

from lowwater.lab.course import Course, CourseUse, Sheet

SHEET = Sheet(
    name="test",
    input=1_000,
    read=100,
    write=1_250,
    output=5_000,
    other_input=200,
    other_output=1_000,
    ttl=300,
    window=1_000,
    reserved=100,
    summary=30,
    instruction=4,
)


@st.composite
def drawn_courses(draw, turns, *, fixed, tail, most_turns, most_uses):
    """Return courses with turns, fixed start and tail of these strategies, with recorded uses or expected ones."""
    made = tuple(draw(st.lists(turns, min_size=1, max_size=most_turns)))
    pairs = [(of, at) for at in range(len(made)) for of in range(at)]
    used = draw(st.lists(st.sampled_from(pairs), max_size=most_uses)) if pairs else []
    uses = tuple(
        CourseUse(of=of, at=at, tokens=made[of].results, in_digest=draw(st.booleans())) for of, at in used
    )
    return Course(
        name="drawn",
        fixed=draw(fixed),
        tail=draw(tail),
        turns=made,
        uses=draw(st.sampled_from([None, uses])),
    )
