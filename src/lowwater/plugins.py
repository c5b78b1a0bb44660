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
    Past,
    PricedPlan,
    Reason,
)
from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Checkpointed,
    Compacted,
    Edit,
    Entry,
    KeptRange,
    ModelChanged,
    Opened,
    PreambleChanged,
    Retracted,
    Rewound,
    SummarizedSpan,
)
from lowwater.core.ledger import Numbered
from lowwater.core.limits import Limits
from lowwater.core.mechanisms.edits import edit_if_smaller, offer_edits
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones
from lowwater.core.mechanisms.placeholder import way_back
from lowwater.core.mechanisms.results import ShownResult, share_of_tokens
from lowwater.core.messages import (
    Document,
    Image,
    Message,
    Opaque,
    Span,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Wire,
)
from lowwater.core.policies.policy import PRICED, ActionPoint, Policy
from lowwater.core.proposals import Preset, Proposal, Target
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Landmark,
    Listed,
    Outline,
    Stored,
)
from lowwater.core.summary.request import CachedPrefix, SummaryRequest, Written
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
    "ActionPoint",
    "AlteredMessage",
    "Append",
    "Appended",
    "AsyncSummarizer",
    "BadInput",
    "BadSetting",
    "CachedPrefix",
    "Candidates",
    "Checkpointed",
    "Compact",
    "Compacted",
    "Conceal",
    "DamagedStore",
    "Decision",
    "DecisionContext",
    "Document",
    "Edit",
    "EditContext",
    "Edited",
    "Entry",
    "Fact",
    "Fingerprint",
    "FingerprintMatch",
    "Hit",
    "Image",
    "Item",
    "Keep",
    "KeptRange",
    "Landmark",
    "Limits",
    "Listed",
    "Mechanism",
    "Message",
    "ModelChanged",
    "Numbered",
    "Opaque",
    "Opened",
    "Original",
    "Outline",
    "Past",
    "Policy",
    "PreambleChanged",
    "Preset",
    "PricedPlan",
    "Proposal",
    "Reason",
    "Retracted",
    "Rewound",
    "Settings",
    "ShownResult",
    "Span",
    "StaleLedger",
    "Store",
    "Stored",
    "SummarizedSpan",
    "Summarizer",
    "Summary",
    "SummaryFailed",
    "SummaryRequest",
    "Target",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "UnusableStore",
    "Wire",
    "Written",
    "Zones",
    "best_of",
    "edit_if_smaller",
    "offer_edits",
    "share_of_tokens",
    "shown_parts",
    "way_back",
]
