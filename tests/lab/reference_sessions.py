"""Small sessions with tool results, and ledgers that show, elide, summarise or drop them."""

from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Compacted,
    Edit,
    KeptRange,
    Numbers,
    Opened,
    SummarizedSpan,
)
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text, ToolCall, ToolResult, texts_of

TOKENIZER = tokenizer_for("o200k")


def asked(text):
    return Message(role="user", parts=(Text(text=text),))


def said(text, *calls):
    return Message(role="assistant", parts=(Text(text=text), *calls))


def call(id, arguments="{}", name="read"):
    return ToolCall(id=id, name=name, arguments=arguments)


def answered(id, text):
    return Message(role="tool", parts=(ToolResult(call_id=id, parts=(Text(text=text),)),))


def ledger_of(messages, *stands):
    """Return the ledger of these messages, showing `stands` if there are any."""
    sizes = tuple(TOKENIZER.count("\n".join(texts_of(message))) for message in messages)
    ledger = Ledger().extend(
        [Opened(at=0, model="m", vocabulary="o200k"), Appended(at=0, messages=tuple(messages), tokens=sizes)]
    )
    return ledger.append(Compacted(at=1, mechanisms=(), items=stands)) if stands else ledger


def shown(first, last):
    return KeptRange(numbers=Numbers(first=first, last=last))


def elided(number, placeholder):
    """Stand for the tool message `number`, whose result's text is replaced."""
    return AlteredMessage(number=number, edits=(Edit(path=(0, 0), by=Text(text=placeholder)),), tokens=10)


def summarised(first, last, text="They did some work."):
    return SummarizedSpan(text=text, role="user", sources=(Numbers(first=first, last=last),), tokens=10)
