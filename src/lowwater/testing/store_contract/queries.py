"""Checks of what a store finds: sessions and their accounts, messages by words, sessions by fingerprints."""

from lowwater.core.entries import Appended, Checkpointed, ModelChanged, Opened, Rewound
from lowwater.core.events import Event, TurnRecord
from lowwater.core.messages import Message, Text, Thinking, ToolCall, ToolResult
from lowwater.core.stored import About, Append, Fingerprint, FingerprintMatch, Listed
from lowwater.protocols import Store
from lowwater.testing.store_contract.samples import (
    Check,
    ConcealingCheck,
    Open,
    OpenConcealing,
    add,
    compaction,
    said,
    skip,
    summarized,
    turn,
)

# Lists and accounts


def _a_session_is_listed_with_all_that_is_told_of_it(reopen: Open) -> None:
    store = reopen()
    about = About(title="t", parent="p", ended_at=20.0, ended_because="done")
    opened = Opened(at=5.0, model="m", vocabulary="w")
    version = store.append("a", 0, Append(entries=(opened, said("one", at=6.0), said("two", at=6.5))))
    version = store.append(
        "a", version, Append(entries=(summarized(2, at=7.0),), events=(compaction(at=7.5),), record=turn(8.0))
    )
    version = store.append("a", version, Append(entries=(Rewound(at=9.0, to=2),), about=about))
    version = store.append("a", version, Append(entries=(ModelChanged(at=10.0, model="n"),)))
    version = store.append("a", version, Append(record=turn(at=12.0, model="n")))
    (listed,) = store.sessions()
    assert listed == Listed(
        name="a",
        version=version,
        entries=6,
        messages=2,
        turns=2,
        compactions=1,
        model="n",
        opened_at=5.0,
        changed_at=12.0,
        about=about,
    )
    store.close()


def _a_session_without_entries_is_listed_too(reopen: Open) -> None:
    store = reopen()
    version = store.append("s", 0, Append(about=About(title="t")))
    (listed,) = store.sessions()
    assert (listed.entries, listed.messages, listed.turns, listed.compactions, listed.model) == (
        0,
        0,
        0,
        0,
        "",
    )
    assert (listed.opened_at, listed.changed_at, listed.version) == (0.0, 0.0, version)
    store.append("s", version, Append(events=(skip(at=4.0),)))
    (listed,) = store.sessions()
    assert (listed.opened_at, listed.changed_at) == (4.0, 4.0)
    store.close()


def _sessions_are_listed_with_the_one_changed_last_first(reopen: Open) -> None:
    store = reopen()
    version = add(store, "a", 0, said("one", at=6.0))
    add(store, "b", 0, said("x", at=1.0))
    add(store, "c", 0, said("x", at=100.0))
    assert [one.name for one in store.sessions()] == ["c", "b", "a"]
    add(store, "a", version, Checkpointed(at=7.0, name="c"))
    assert [one.name for one in store.sessions()] == ["a", "c", "b"]
    store.close()


def _records_and_events_come_back_in_order(reopen: Open) -> None:
    store = reopen()
    bare = TurnRecord(at=6.0, model="n")
    version = store.append("s", 0, Append(record=turn(), events=(skip(at=4.0), compaction(at=4.5))))
    version = store.append("s", version, Append(entries=(said("one"),)))
    version = store.append("s", version, Append(events=(compaction(at=4.25, number=2),)))
    store.append("s", version, Append(record=bare, events=(skip(at=8.0),)))
    (account,) = store.accounts()
    assert account.records == (turn(), bare)
    events: tuple[Event, ...] = (
        skip(at=4.0),
        compaction(at=4.5),
        compaction(at=4.25, number=2),
        skip(at=8.0),
    )
    assert account.events == events
    assert account.turns_before == (0, 0, 1, 1), "told by what was stored first, whatever the clock said"
    store.close()


def _an_event_of_which_little_is_known_comes_back(reopen: Open) -> None:
    store = reopen()
    known = compaction()
    bare = type(known)(
        at=1.0,
        model="",
        mode="prune",
        mechanisms=(),
        because=known.because,
        before=0,
        after=0,
        items_before=0,
        items_after=0,
        first_changed=0,
        disturbed=0,
        cost=None,
    )
    given_up = type(skip())(at=2.0, because=known.because, prompt=0, rejected=known.rejected)
    store.append("s", 0, Append(events=(bare, given_up)))
    assert store.accounts()[0].events == (bare, given_up)
    store.close()


def _accounts_are_of_the_sessions_asked_for(reopen: Open) -> None:
    store = reopen()
    for name in ("a", "b", "c"):
        store.append(name, 0, Append(record=turn(model=name)))
    listed = store.sessions()
    assert [account.session for account in store.accounts()] == listed
    assert [account.session.name for account in store.accounts(["a", "nobody", "c", "a"])] == ["c", "a"]
    assert [account.records[0].model for account in store.accounts()] == ["c", "b", "a"]
    assert store.accounts([]) == []
    store.close()


ACCOUNTING: tuple[Check, ...] = (
    _a_session_is_listed_with_all_that_is_told_of_it,
    _a_session_without_entries_is_listed_too,
    _sessions_are_listed_with_the_one_changed_last_first,
    _records_and_events_come_back_in_order,
    _an_event_of_which_little_is_known_comes_back,
    _accounts_are_of_the_sessions_asked_for,
)


# Search


def _found(store: Store, words: str, *, session: str | None = None, limit: int = 5) -> list[tuple[str, int]]:
    return [(hit.session, hit.number) for hit in store.search(words, session=session, limit=limit)]


def _any_of_the_words_finds_a_message(reopen: Open) -> None:
    store = reopen()
    add(store, "s", 0, said("The kernel panicked in Tokyo"), said("a naïve test_auth.py"), said("nothing"))
    for words in ("kernel", "KERNEL", "absent kernel", "panicked, they said", "tokyo\tabsent\nwords"):
        assert _found(store, words) == [("s", 1)], words
    for words in ("test_auth.py", "naïve", "Naive", "auth"):
        assert _found(store, words) == [("s", 2)], words
    for words in ("kern", "absent", "absent_one"):
        assert _found(store, words) == [], words
    assert set(_found(store, "kernel nothing")) == {("s", 1), ("s", 3)}
    store.close()


def _a_hit_says_where_it_is_and_how_long(reopen: Open) -> None:
    store = reopen()
    version = add(store, "s", 0, said("one"))
    add(store, "s", version, Appended(at=2.0, messages=said("other words").messages, tokens=(77,)))
    (hit,) = store.search("other")
    assert (hit.session, hit.number, hit.tokens) == ("s", 2, 77)
    assert hit.score > 0
    store.close()


def _everything_before_the_model_is_found(reopen: Open) -> None:
    store = reopen()
    call = ToolCall(id="c1", name="grep_files", arguments='{"pattern": "needle"}')
    asked = Message(role="assistant", parts=(Thinking(text="pondering", signature="s"), call))
    result = ToolResult(call_id="c1", parts=(Text(text="haystack"),))
    answered = Message(role="tool", parts=(result,))
    add(store, "s", 0, Appended(at=1.0, messages=(asked, answered), tokens=(1, 1)))
    for words, number in (("needle", 1), ("grep_files", 1), ("pondering", 1), ("haystack", 2)):
        assert _found(store, words) == [("s", number)], words
    store.close()


def _words_of_chinese_japanese_and_korean_are_found_inside_longer_ones(reopen: Open) -> None:
    store = reopen()
    add(store, "s", 0, said("出張は東京都で한국어だ"), said("京東と数据库连接失败。"), said("plain"))
    for words in ("東京", "東京都", "한국", "出張", "都で"):
        assert _found(store, words) == [("s", 1)], words
    for words in ("数据库", "连接", "失败", "absent 失败", "ジャガ 連接、失败"):
        assert _found(store, words) == [("s", 2)], words
    assert set(_found(store, "京")) == {("s", 1), ("s", 2)}
    assert _found(store, "都東") == []
    store.close()


def _more_of_the_words_and_rarer_ones_are_better(reopen: Open) -> None:
    store = reopen()
    common = [said(f"common text of filler {number}") for number in range(8)]
    rare = said("peculiar text of filler here")
    both = said("peculiar common of filler here")
    add(store, "s", 0, *common[:4], rare, *common[4:], both)
    hits = store.search("common peculiar", limit=3)
    assert [hit.number for hit in hits[:2]] == [10, 5]
    assert hits[0].score > hits[1].score > hits[2].score
    assert len(store.search("common peculiar", limit=100)) == 10
    store.close()


def _a_search_can_be_limited(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, *(said(f"word {number}") for number in range(8)))
    add(store, "b", 0, said("word elsewhere"))
    assert len(store.search("word")) == 5
    assert len(store.search("word", limit=2)) == 2
    assert store.search("word", limit=0) == []
    assert len(store.search("word", limit=100)) == 9
    assert _found(store, "word", session="b") == [("b", 1)]
    assert len(store.search("word", session="a", limit=100)) == 8
    assert store.search("elsewhere", session="a") == []
    assert store.search("word", session="nobody") == []
    store.close()


def _the_same_message_is_a_hit_wherever_it_occurs_the_newest_first(reopen: Open) -> None:
    store = reopen()
    version = add(store, "a", 0, said("same words"), said("filler"), said("same words"))
    add(store, "b", 0, said("same words"))
    assert _found(store, "same") == [("b", 1), ("a", 3), ("a", 1)]
    add(store, "a", version, said("filler"))
    assert _found(store, "same", limit=2) == [("a", 3), ("a", 1)]
    store.close()


def _any_text_is_a_legal_search(reopen: Open) -> None:
    store = reopen()
    add(store, "s", 0, said("the quick AND the dead: it's a NEAR miss"), said("unrelated"))
    for nothing in ("", "   ", "\x00", "!?,;", '"', "''", "* ^ -", "( ) { }", "👩‍👩‍👧", "\ud83d", "%_\\"):
        assert store.search(nothing) == [], nothing
        assert store.search(nothing, session="s") == [], nothing
    legal = (
        '"quick',
        "quick*",
        "quick AND",
        "NOT quick",
        "(quick",
        "'; DROP TABLE messages; -- quick",
        "quick\x00",
        "quick & ! | <-> :*",
        "\\quick\\",
        "\ud83d quick",
        "quick " * 5_000,
        "quick " + " ".join(f"absent{number}" for number in range(3_000)),
    )
    for words in legal:
        assert _found(store, words)[0] == ("s", 1), words[:40]
    # Whatever joins words, their parts are looked for, and nothing is an operator.
    for joined in ("text:quick", "NEAR(quick,2)", "quick+dead", "^quick-absent"):
        assert _found(store, joined) == [("s", 1)], joined
    store.close()


def _names_are_found_by_their_parts(reopen: Open) -> None:
    store = reopen()
    names = (
        "it calls getUserName now",
        "nothing here",
        "see src/billing/retry_policy.py",
        "nothing",
        "a plain user",
    )
    add(store, "s", 0, *(said(text) for text in names))
    for words in ("get_user_name", "user name", "getUserName", "GetUserName"):
        assert _found(store, words)[0] == ("s", 1), words
    for words in ("retry policy", "retryPolicy.ts", "billing/retry_policy.py", "retries of billing"):
        assert _found(store, words)[0] == ("s", 3), words
    store.close()


def _words_are_found_in_their_other_forms(reopen: Open) -> None:
    store = reopen()
    add(store, "s", 0, said("the uploads were retried"), said("caching it"), said("we deployed"))
    for words, number in (("upload", 1), ("retry", 1), ("cache", 2), ("deployment", 3), ("deploys", 3)):
        assert _found(store, words) == [("s", number)], words
    store.close()


def _a_question_finds_what_it_is_about(reopen: Open) -> None:
    store = reopen()
    talk = (
        "Let us see what we have.",
        "What did you want to do about the thing that we talked of?",
        "The staging server listens on port 8472.",
        "What was that again? What did you say?",
    )
    add(store, "s", 0, *(said(text) for text in talk))
    asked = "What was the port that the staging server listens on again?"
    assert _found(store, asked)[0] == ("s", 3)
    assert _found(store, "what did you say")[0] == ("s", 4)
    store.close()


def _what_is_concealed_is_not_found(reopen: OpenConcealing) -> None:
    store = reopen(lambda text: text.replace("hunter2", "[redacted]"))
    version = add(store, "s", 0, said("the password is hunter2, remember"))
    assert store.search("hunter2") == []
    assert _found(store, "remember") == [("s", 1)]
    # Only the index lacks the secret: the message itself is stored unchanged.
    (kept,) = store.messages("s", 1, 2, version=version)
    assert kept.message.text == "the password is hunter2, remember"
    store.close()


SEARCHING: tuple[Check, ...] = (
    _any_of_the_words_finds_a_message,
    _a_hit_says_where_it_is_and_how_long,
    _everything_before_the_model_is_found,
    _words_of_chinese_japanese_and_korean_are_found_inside_longer_ones,
    _more_of_the_words_and_rarer_ones_are_better,
    _a_search_can_be_limited,
    _the_same_message_is_a_hit_wherever_it_occurs_the_newest_first,
    _any_text_is_a_legal_search,
    _names_are_found_by_their_parts,
    _words_are_found_in_their_other_forms,
    _a_question_finds_what_it_is_about,
)
CONCEALING_CHECKS: tuple[ConcealingCheck, ...] = (_what_is_concealed_is_not_found,)


# Fingerprints, and the store's secret

_ONE, _TWO, _THREE = (bytes([number]) * 16 for number in (1, 2, 3))


def _left(store_session: str, *keys: bytes, tenant: str = "t", hint: str = "") -> Fingerprint:
    return Fingerprint(tenant=tenant, session=store_session, keys=keys, hint=hint)


def _a_trail_leads_to_its_session(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.record_fingerprint(_left("a", _ONE, _TWO, hint="h"))
    assert store.lookup_fingerprints("t", [_THREE, _TWO]) == [
        FingerprintMatch(key=_TWO, session="a", hint="h", newest=True)
    ]
    assert store.lookup_fingerprints("t", []) == []
    store.close()


def _only_the_last_trail_is_the_newest(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.record_fingerprint(_left("a", _ONE, _TWO))
    store.record_fingerprint(_left("a", _TWO, _THREE))
    newest = {
        followed.key: followed.newest for followed in store.lookup_fingerprints("t", [_ONE, _TWO, _THREE])
    }
    assert newest == {_ONE: False, _TWO: True, _THREE: True}
    store.close()


def _a_tenant_never_follows_another_ones_trail(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.record_fingerprint(_left("a", _ONE, tenant="theirs"))
    assert store.lookup_fingerprints("ours", [_ONE]) == []
    store.close()


def _several_sessions_may_have_the_same_key(reopen: Open) -> None:
    store = reopen()
    for name in ("a", "b"):
        add(store, name, 0, said("one"))
        store.record_fingerprint(_left(name, _ONE))
    assert sorted(followed.session for followed in store.lookup_fingerprints("t", [_ONE])) == ["a", "b"]
    assert all(followed.newest for followed in store.lookup_fingerprints("t", [_ONE]))
    store.close()


def _a_session_that_is_gone_left_no_trail(reopen: Open) -> None:
    store = reopen()
    store.record_fingerprint(_left("never", _ONE))
    add(store, "a", 0, said("one"))
    store.record_fingerprint(_left("a", _ONE))
    store.delete("a")
    add(store, "a", 0, said("again"))
    assert store.lookup_fingerprints("t", [_ONE]) == []
    store.close()


def _thousands_of_keys_may_be_asked_for(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("one"))
    store.record_fingerprint(_left("a", _ONE))
    keys = [number.to_bytes(16, "big") for number in range(3_000)]
    assert [followed.key for followed in store.lookup_fingerprints("t", [*keys, _ONE])] == [_ONE]
    store.close()


def _the_secret_stays_the_same(reopen: Open) -> None:
    store = reopen()
    assert len(store.secret()) == 32
    assert store.secret() == store.secret()
    store.close()


TRAILING: tuple[Check, ...] = (
    _a_trail_leads_to_its_session,
    _only_the_last_trail_is_the_newest,
    _a_tenant_never_follows_another_ones_trail,
    _several_sessions_may_have_the_same_key,
    _a_session_that_is_gone_left_no_trail,
    _thousands_of_keys_may_be_asked_for,
    _the_secret_stays_the_same,
)
