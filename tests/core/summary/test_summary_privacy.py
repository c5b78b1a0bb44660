"""Summaries hold no secrets, unless that is wanted, and nobody misses what was concealed."""

from msgspec.structs import replace

from lowwater.core.mechanisms.spans import replace_span
from lowwater.core.messages import Span
from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.frame import frame, static_marker, unframe
from lowwater.core.summary.request import CachedPrefix, SummaryRequest, Written
from lowwater.core.summary.sanitize import concealed
from lowwater.core.summary.validation import validate
from lowwater.core.view import Summary
from lowwater.testing.fakes import WordTokenizer
from lowwater.testing.views import Script, making
from tests.core.summary.conftest import Talk

KEY = "sk-" + "ant-api03-a8F3kD92mNb4Qz71XyW5"
DRAWN = "q9Z8x7W6v5U4t3S2r1"
"""Known as a secret by the name it stands under, and by nothing else."""
COUNT = WordTokenizer()


def talk() -> Talk:
    return (
        Talk()
        .user(f"Deploy the service with {KEY} and never print the password. Use src/deploy.py for it.")
        .runs(
            f"DEPLOY_TOKEN={DRAWN} python src/deploy.py --key {KEY}",
            f'Error: login failed for {KEY}\n{{"client_secret": "{DRAWN}"}}\nError: port 8443 refused',
            failed=True,
        )
        .says(f"The service at src/deploy.py refuses `{KEY}` and port 8443; access_token={DRAWN} fails too.")
    )


def request(**changes: object) -> SummaryRequest:
    messages = tuple(talk().messages)
    asked = SummaryRequest(
        messages=messages, max_tokens=800, newest_user=messages[0], previous=f"- had {KEY}"
    )
    return replace(asked, **changes)


def test_an_extract_holds_no_secret_and_keeps_the_rest() -> None:
    text = extract(request(), COUNT)
    assert KEY not in text
    assert DRAWN not in text
    assert "src/deploy.py" in text
    assert "port 8443 refused" in text


def test_an_extract_holds_them_if_that_is_wanted() -> None:
    assert KEY in extract(request(redact=False), COUNT)


def test_an_extract_stays_within_its_budget_where_much_is_concealed() -> None:
    many = Talk().user("Rotate these keys: " + " ".join(f"{KEY}{number}" for number in range(300)))
    small = SummaryRequest(messages=tuple(many.messages), max_tokens=60)
    assert COUNT.count(extract(small, COUNT)) <= 60


def test_a_marker_holds_no_secret() -> None:
    assert KEY not in static_marker(request())


def test_a_secret_is_no_critical_reference() -> None:
    kept = critical_references(request())
    assert not [reference for reference in kept if KEY in reference.text or DRAWN in reference.text]
    (told,) = [reference for reference in kept if "[redacted: " in reference.text]
    assert told.text == "Deploy the service with [redacted: Anthropic key] and never print the password."
    assert any(reference.text == "src/deploy.py" for reference in kept)
    assert any(KEY in reference.text for reference in critical_references(request(redact=False)))


def test_a_summary_is_judged_alike_whether_its_secrets_are_concealed_already() -> None:
    asked = request()
    bare = extract(replace(asked, redact=False), COUNT)
    hidden = frame(bare, user_follows=True)
    for text in (bare, hidden):
        verdict = validate(Written(text=text, by="x"), asked, COUNT, 10_000)
        assert verdict.accepted, verdict.because
    scores = {validate(Written(text=text, by="x"), asked, COUNT, 10_000).score for text in (bare, hidden)}
    assert len(scores) == 1


def test_a_frame_conceals_whoever_wrote_the_summary() -> None:
    assert unframe(frame(f"- had {KEY}", user_follows=True)) == "- had [redacted: Anthropic key]"
    assert unframe(frame(f"- had {KEY}", user_follows=True, redact=False)) == f"- had {KEY}"


def test_what_stands_in_a_view_holds_no_secret() -> None:
    items = Script().user("a").says("b").user("c").says("d").items()
    for redact in (True, False):
        shorter = replace_span(items, Span(start=0, stop=2), f"- had {KEY}", making(redact=redact))
        [summary] = [item for item in shorter if isinstance(item, Summary)]
        assert (KEY in summary.message.text) is not redact


def test_what_is_ridden_on_stays_as_it_is() -> None:
    riding = CachedPrefix(format="anthropic", body=KEY.encode(), since=tuple(talk().messages))
    read = concealed(request(cached_prefix=riding))
    assert read.cached_prefix is riding
    assert KEY not in repr(replace(read, cached_prefix=None))
    assert concealed(read) is read
