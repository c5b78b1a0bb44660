"""The examples in the docs are what the code writes."""

from bench.summary_examples import PAGE, rewritten


def test_the_examples_in_the_docs_are_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- example:") == 3
    assert page == rewritten(page), "run `python -m bench.summary_examples` to write the examples again"
