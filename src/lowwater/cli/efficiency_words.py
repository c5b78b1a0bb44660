"""What compaction cost and saved, in sentences."""

from lowwater.cli.kept_words import amount
from lowwater.core.accounts.figures import Figures, Repayment
from lowwater.core.wording import counted


def costs_said(of: Figures) -> str:
    """Say what calls and summaries cost, and what calls would have cost untouched; what is missing is counted."""
    summaries = f" and {amount(of.summary_cost)} for summaries" if of.summary_cost != 0 else ""
    untouched = f"; about {amount(of.untouched)} untouched" if of.untouched is not None and of.passes else ""
    missing = f" ({counted(of.unpriced_turns, 'turn')} not priced)" if of.unpriced_turns else ""
    return f"{amount(of.cost)} for calls{summaries}{untouched}{missing}"


def repaid_said(of: Repayment) -> str:
    """Say how many compactions paid for themselves."""
    told = [f"{of.paid:,} paid back"] if of.paid else []
    told += [f"{of.open:,} not yet"] if of.open else []
    undone = f" ({of.undone:,} undone)" if of.undone else ""
    told += [f"{of.failed:,} never will{undone}"] if of.failed else []
    told += [f"{of.unknown:,} cannot be told"] if of.unknown else []
    return ", ".join(told) or "nothing to pay back"


def payback_said(of: Repayment) -> str:
    """Say how many compactions paid for themselves, and after how many calls against how many predicted."""
    if of.predicted is None or of.realised is None:
        return repaid_said(of)
    return f"{repaid_said(of)}; after {of.realised:.1f} later calls, predicted {of.predicted:.1f}"
