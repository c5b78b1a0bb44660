import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.mechanisms.digest import digest, distinct_names, read_content
from lowwater.core.references import NAME
from lowwater.core.tokens.estimate import CharacterTokenizer

TOKENIZER = SplintrTokenizer()

PYTHON = """import os
from billing.ledger import open_ledger


class InvoiceReader:
    def read_invoice(self, invoice_id: str) -> Invoice:
        return self.store.load_invoice(invoice_id)


def close_month(month):
    for entry in open_ledger(month):
        entry.settle_balance()
"""
NUMBERED = "\n".join(f"{number:6}→{line}" for number, line in enumerate(PYTHON.split("\n"), start=41))
GO = """package store

func (s *GitStore) WriteCommitted(ctx context.Context) error {
\treturn s.flushPending(ctx)
}

type CheckpointIndex struct {
\tEntries map[string]int
}
"""
DIFF = """diff --git a/src/pay/tax.py b/src/pay/tax.py
index 3f2a9c1..8b7d6e5 100644
--- a/src/pay/tax.py
+++ b/src/pay/tax.py
@@ -10,4 +12,6 @@ def tax_of(order):
-    return old_rate(order)
+    return new_rate(order)
"""
LOG = """collected 120 items
tests/test_cart.py::test_total PASSED
tests/test_cart.py::test_discount FAILED
E   ValueError: discount above hundred per cent
1 failed, 119 passed in 3.21s
"""
SEARCH = """src/cart/total.py:14:def cart_total(items):
src/cart/total.py:31:    return cart_total(rest)
src/shop/checkout.py-88-    total = cart_total(basket)
"""
JSON = '{"orders": [{"order_id": "ord_884213", "total": 1290, "status": "paid"}], "next_page": "tok_55"}'
TABLE = "name,city,amount,paid\nAda,Paris,120,yes\nBob,Rome,90,no\nCid,Oslo,70,yes\n"
PROSE = """# Migration plan

Some words about `old_api` and why it has to go.

## Open questions

Whether /srv/data/archive.db is still read by anyone.
"""


def digested(text, tool="other", subject="", tokens=200, known=frozenset()):
    return digest(text, tool=tool, subject=subject, tokens=tokens, tokenizer=TOKENIZER, known=known)


@pytest.mark.parametrize(
    ("text", "tool", "kind"),
    [
        pytest.param(PYTHON, "read", "code", id="a file"),
        pytest.param(NUMBERED, "read", "code", id="a file with line numbers"),
        pytest.param(GO, "shell", "code", id="a file by cat"),
        pytest.param(DIFF, "shell", "diff", id="a diff"),
        pytest.param(LOG, "shell", "log", id="a test run"),
        pytest.param(SEARCH, "shell", "search", id="hits of a search in a shell"),
        pytest.param("src/a.py\nsrc/b.py\nREADME.md", "search", "search", id="paths"),
        pytest.param("src/a.py\nsrc/b.py\nREADME.md", "shell", "search", id="paths from a shell"),
        pytest.param(JSON, "web", "json", id="an object"),
        pytest.param("[1, 2, 3]", "other", "json", id="an array"),
        pytest.param(TABLE, "shell", "table", id="comma separated"),
        pytest.param("| a | b |\n|---|---|\n| 1 | 2 |", "web", "table", id="a Markdown table"),
        pytest.param(PROSE, "agent", "prose", id="a report"),
        pytest.param(PROSE, "read", "prose", id="a text file"),
        pytest.param("[tool] not JSON at all", "web", "prose", id="words in brackets"),
        pytest.param("", "read", "prose", id="nothing"),
    ],
)
def test_the_kind_of_content_is_told_from_the_text_and_the_tool(text, tool, kind):
    assert read_content(text, tool=tool, subject="").kind == kind


def test_line_numbers_of_the_tool_are_taken_off_only_if_they_count_up():
    assert read_content(NUMBERED, tool="read", subject="").text == PYTHON
    assert read_content(NUMBERED, tool="read", subject="").first_line == 41
    data = "10: a\n20: b\n15: c\n"
    assert read_content(data, tool="read", subject="").text == data


@pytest.mark.parametrize(
    ("text", "tool", "wanted"),
    [
        pytest.param(
            NUMBERED,
            "read",
            ["45 InvoiceReader", "46 read_invoice", "50 close_month"],
            id="definitions with lines",
        ),
        pytest.param(GO, "read", ["\nWriteCommitted ", "\nCheckpointIndex"], id="definitions without lines"),
        pytest.param(
            DIFF,
            "shell",
            ["src/pay/tax.py\n", "@12 def tax_of(order):", "new_rate"],
            id="files and hunks",
        ),
        pytest.param(
            LOG,
            "shell",
            ["ValueError: discount above hundred per cent", "1 failed, 119 passed"],
            id="errors and outcome",
        ),
        pytest.param(
            SEARCH,
            "search",
            ["src/cart/total.py:14 ", "src/shop/checkout.py:88"],
            id="file and line",
        ),
        pytest.param(JSON, "web", ["keys orders order_id", "ord_884213", "1290"], id="keys and ids"),
        pytest.param(TABLE, "shell", ["name,city,amount,paid\nAda,Paris,120,yes"], id="header and first row"),
        pytest.param(
            PROSE, "agent", ["# Migration plan", "## Open questions", "/srv/data/archive.db"], id="headings"
        ),
    ],
)
def test_the_outline_follows_the_kind_of_content(text, tool, wanted):
    found = digested(text, tool=tool)
    assert [each for each in wanted if each not in f"\n{found} "] == []


def test_names_stand_below_the_definition_they_first_appear_in():
    lines = digested(NUMBERED, tool="read").split("\n")
    assert (
        next(line for line in lines if line.startswith("46 "))
        == "46 read_invoice invoice_id self.store.load_invoice"
    )


def test_paragraphs_of_code_are_numbered_where_there_is_room():
    body = "\n\n".join(f"first_{at} = load_{at}()\nsecond_{at} = save_{at}()" for at in range(3))
    numbered = "\n".join(f"{at}\t{line}" for at, line in enumerate(body.split("\n"), start=100))
    assert digested(numbered, tool="read").split("\n")[1:] == [
        "103 first_1 load_1 second_1 save_1",
        "106 first_2 load_2 second_2 save_2",
    ]


def test_what_the_call_says_and_what_is_known_is_left_out():
    found = digested(
        PYTHON, tool="read", subject="grep entry.settle_balance", known=frozenset({"open_ledger"})
    )
    assert not {"entry.settle_balance", "open_ledger"} & set(found.split())
    assert "read_invoice" in found


def test_a_name_inside_another_is_not_written_twice():
    found = digested("use app.config.load_all and load_all and app.config", tool="agent")
    assert found == "app.config.load_all"


def test_ids_go_before_common_names_when_room_is_short():
    record = ", ".join(f'"field_name_{at}": "some_value_{at}"' for at in "abcdefghijk")
    assert "pay_9931772" in digested(f'{{{record}, "payment": "pay_9931772"}}', tool="other", tokens=20)


def test_escaped_line_breaks_do_not_cling_to_names():
    assert (
        digested('{"log": "first\\nrun_job failed\\nsrc/jobs/queue.py"}').split("\n")[-1]
        == "run_job src/jobs/queue.py"
    )


def test_nothing_fits_into_no_tokens():
    assert digested(PYTHON, tokens=0) == ""
    assert digested(PYTHON, tokens=-5) == ""


def test_a_text_without_names_has_no_digest():
    assert digested("only plain words here and nothing more to name", tool="web") == ""


def test_text_in_other_scripts_keeps_its_names():
    found = digested("設定は config/設定.yaml にあります。関数 read_config を呼びます。", tool="agent")
    assert found == "config/設定.yaml read_config"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("order_" + "x" * 3_000_000, id="one word"),
        pytest.param("\x00\x01\xff\ufffd" * 500_000, id="binary"),
        pytest.param("a_b/c_d " * 400_000, id="one path again and again"),
        pytest.param("Error: again\n" * 200_000, id="one error again and again"),
        pytest.param(
            "\n".join(f"{at}→def f_{at}(): pass" for at in range(1, 100_000)), id="many definitions"
        ),
    ],
)
def test_a_huge_text_takes_bounded_work(text):
    assert TOKENIZER.count(digested(text, tool="read", tokens=500)) <= 500


def test_of_a_huge_text_start_and_end_are_read():
    text = "first_thing " + "filler " * 500_000 + "last_thing"
    assert digested(text, tool="agent") == "first_thing last_thing"


PIECES = st.sampled_from(
    [
        PYTHON,
        NUMBERED,
        GO,
        DIFF,
        LOG,
        SEARCH,
        JSON,
        TABLE,
        PROSE,
        "\n",
        " ",
        "→",
        "1→",
        "漢字",
        "a.b",
        "x/",
        "Error:",
        "\x00",
        "\\n",
        "🙂",
    ]
)
TEXTS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=12).map("".join))
TOOLS = st.sampled_from(["read", "write", "shell", "search", "list", "web", "agent", "other"])


@given(text=TEXTS, tool=TOOLS, tokens=st.integers(-1, 120), subject=st.text(max_size=20))
def test_a_digest_never_exceeds_its_budget_and_is_the_same_every_time(text, tool, tokens, subject):
    found = digested(text, tool=tool, tokens=tokens, subject=subject)
    assert TOKENIZER.count(found) <= max(tokens, 0)
    assert digested(text, tool=tool, tokens=tokens, subject=subject) == found


@given(text=TEXTS, tool=TOOLS)
def test_every_name_listed_occurs_in_the_original(text, tool):
    for name in distinct_names(read_content(text, tool=tool, subject=""), frozenset()):
        assert name.text in text


@given(text=TEXTS, tool=TOOLS, tokens=st.integers(0, 60))
def test_the_budget_holds_for_the_estimate_too(text, tool, tokens):
    tokenizer = CharacterTokenizer()
    found = digest(text, tool=tool, subject="", tokens=tokens, tokenizer=tokenizer)
    assert tokenizer.count(found) <= tokens


@given(text=TEXTS, tool=TOOLS)
def test_known_names_are_never_listed(text, tool):
    content = read_content(text, tool=tool, subject="")
    known = frozenset(NAME.findall(content.text))
    assert not [name for name in distinct_names(content, known) if name.text in known]
