"""What a plug-in may import: the types that policies, mechanisms, stores and summarizers take and return.

`VERSION` rises when a change here could break a plug-in; adding a name does not raise it. docs/extending.md explains each kind.
"""

from lowwater.core.buy_rule import best_of
from lowwater.core.decisions import (
    Candidates,
    Compact,
    Decision,
    DecisionContext,
    Fact,
    Keep,
    PricedPlan,
    Reason,
)
from lowwater.core.entries import Edit, Entry
from lowwater.core.ledger import Numbered
from lowwater.core.mechanisms.edits import edit_if_smaller, offer_edits
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones
from lowwater.core.mechanisms.placeholder import way_back
from lowwater.core.mechanisms.results import share_of_tokens
from lowwater.core.messages import Message, Text, ToolCall, ToolResult
from lowwater.core.policies.policy import PRICED, Policy
from lowwater.core.proposals import Preset, Proposal, Target
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Listed,
    Outline,
    Stored,
)
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.view import Edited, Item, Original, Summary, shown_parts
from lowwater.errors import BadInput, BadSetting, DamagedStore, StaleLedger, SummaryFailed, UnusableStore
from lowwater.protocols import AsyncSummarizer, Store, Summarizer
from lowwater.settings import Settings
from lowwater.stores.shared import Conceal

VERSION = 1

__all__ = [
    "PRICED",
    "VERSION",
    "About",
    "Account",
    "Append",
    "AsyncSummarizer",
    "BadInput",
    "BadSetting",
    "Candidates",
    "Compact",
    "Conceal",
    "DamagedStore",
    "Decision",
    "DecisionContext",
    "Edit",
    "EditContext",
    "Edited",
    "Entry",
    "Fact",
    "Fingerprint",
    "FingerprintMatch",
    "Hit",
    "Item",
    "Keep",
    "Listed",
    "Mechanism",
    "Message",
    "Numbered",
    "Original",
    "Outline",
    "Policy",
    "Preset",
    "PricedPlan",
    "Proposal",
    "Reason",
    "Settings",
    "StaleLedger",
    "Store",
    "Stored",
    "Summarizer",
    "Summary",
    "SummaryFailed",
    "SummaryRequest",
    "Target",
    "Text",
    "ToolCall",
    "ToolResult",
    "UnusableStore",
    "Written",
    "Zones",
    "best_of",
    "edit_if_smaller",
    "offer_edits",
    "share_of_tokens",
    "shown_parts",
    "way_back",
]
