"""The audit's page has the report's numbers, all of them or as many as it says."""

import msgspec
import pytest

from lowwater.lab.audit.findings import CAUSES as FOUND
from lowwater.lab.pages.audit import CAUSES, MOST_SESSIONS, AuditData, audit_page, audit_page_data
from lowwater.lab.pages.document import MOST_COLUMNS, OTHER_MODELS, periods_of
from tests.lab.report_samples import DOLLAR, HOSTILE, MADE, PageReader, audit_of


def test_the_data_in_the_page_are_the_reports() -> None:
    report = audit_of(names={2: HOSTILE})
    inside = msgspec.json.decode(PageReader(audit_page(report, made_at=MADE)).data, type=AuditData)
    assert inside == audit_page_data(report)
    assert HOSTILE in {row.name for row in inside.sessions}


def test_periods_sessions_models_and_kinds_of_token_add_up_to_the_bill() -> None:
    report = audit_of()
    data, paid = audit_page_data(report), report.total.figures.cost
    assert paid == sum(number for number in range(1, 31) if number % 3 < 2) * DOLLAR
    assert sum(sum(each.cost) for each in data.periods.spent) == paid
    assert sum(row.cost or 0 for row in data.sessions) == paid
    assert sum(row.cost or 0 for row in data.models) == paid
    assert sum(row.cost for row in data.spending) == paid


def test_every_cause_has_words() -> None:
    assert set(CAUSES) == set(FOUND)


def test_first_calls_are_no_loss() -> None:
    data = audit_page_data(audit_of())
    assert {row.name: row.is_loss for row in data.causes} == {"Expired": True, "First call": False}


def test_what_has_no_price_is_unknown_and_never_zero() -> None:
    data = audit_page_data(audit_of())
    unpriced = [row for row in data.models if row.model == "a model nobody knows"]
    assert [row.cost for row in unpriced] == [None]
    page = audit_page(audit_of(), made_at=MADE)
    assert "have no dollar figure" in page
    assert "$0.00" not in page


def test_what_could_be_saved_stands_in_the_headline_and_beside_what_was_paid() -> None:
    report = audit_of(4)
    assert report.possible is not None
    assert "<h1>4 sessions cost $8.00; about $0.800 of it could have been saved</h1>" in audit_page(report)
    rows = {row.name: row.cost for row in audit_page_data(report).savings}
    assert rows["rent-or-buy"] == report.possible.rent_or_buy
    assert rows["as recorded"] == report.possible.recorded


def test_more_sessions_than_a_page_lists_are_said_to_be_more() -> None:
    report = audit_of(MOST_SESSIONS + 5)
    data = audit_page_data(report)
    assert len(data.sessions) == MOST_SESSIONS
    assert min(row.cost or 0 for row in data.sessions) >= 0
    assert "The 2,000 dearest of 2,005 sessions are listed" in audit_page(report, made_at=MADE)


def test_days_are_columns_without_a_hole() -> None:
    found = periods_of({("2026-01-30", "a"): 1, ("2026-02-02", "a"): 2})
    assert found.starts == ["2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"]
    assert found.spent[0].cost == [1, 0, 0, 2]


@pytest.mark.parametrize(
    ("last", "unit"), [("2026-04-01", "day"), ("2027-12-31", "week"), ("2031-01-01", "month")]
)
def test_a_long_time_is_put_together_into_weeks_or_months(last: str, unit: str) -> None:
    found = periods_of({("2026-01-01", "a"): 3, (last, "b"): 4})
    assert found.unit == unit
    assert len(found.starts) <= MOST_COLUMNS
    assert {each.model: sum(each.cost) for each in found.spent} == {"a": 3, "b": 4}


def test_the_least_of_many_models_are_put_together() -> None:
    found = periods_of({("2026-01-01", f"model {number:02}"): 100 - number for number in range(12)})
    assert [each.model for each in found.spent] == [f"model {number:02}" for number in range(7)] + [
        OTHER_MODELS
    ]
    assert found.spent[-1].cost == [sum(100 - number for number in range(7, 12))]


def test_an_audit_of_nothing_has_a_page() -> None:
    page = audit_page(audit_of(0), made_at=MADE)
    assert PageReader(page).data
    assert "no price known" in page
