"""Does one more message cost the same on a long history as on a short one, when the views are equal?"""

from statistics import median
from time import perf_counter

from lowwater.core.entries import Appended, Compacted, KeptRange, Numbers, SummarizedSpan
from lowwater.core.formats.codec import decode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message
from lowwater.core.tokens.counting import count_message
from lowwater.protocols import Tokenizer

VIEW = 200


def with_history(length: int) -> Ledger:
    """Return a ledger of `length` messages whose view is one summary and the newest messages, `VIEW` items in all."""
    raws = [b'{"role":"user","content":"message %d of the session"}' % number for number in range(length)]
    messages = tuple(decode_messages(raws, "openai_chat"))
    ledger = Ledger()
    for start in range(0, length, 50):
        batch = messages[start : start + 50]
        ledger = ledger.append(Appended(at=0.0, messages=batch, tokens=(6,) * len(batch)))
    cut = length - VIEW + 1
    summary = SummarizedSpan(text="so far", role="user", sources=(Numbers(first=1, last=cut),), tokens=2)
    tail = KeptRange(numbers=Numbers(first=cut + 1, last=length))
    return ledger.append(Compacted(at=0.0, mechanisms=("summarize",), items=(summary, tail)))


def new_message(number: int) -> Message:
    """Return a message of some 400 characters that was never seen before."""
    raw = b'{"role":"user","content":"%s %d"}' % (b"the quick brown fox jumps over it " * 12, number)
    return decode_messages([raw], "openai_chat")[0]


def append_one(ledger: Ledger, message: Message, tokenizer: Tokenizer) -> Ledger:
    """Count a message and append it: what every turn does."""
    tokens = count_message(message, tokenizer)
    return ledger.append(Appended(at=0.0, messages=(message,), tokens=(tokens,)))


def append_costs(tokenizer: Tokenizer, rounds: int = 300) -> tuple[float, float]:
    """Return the median seconds of one append to a history of 200 and to one of 10,000, measured in turns."""
    ledgers = [with_history(VIEW), with_history(10_000)]
    seconds: list[list[float]] = [[], []]
    for number in range(rounds):
        which = number % 2
        message = new_message(number)
        start = perf_counter()
        ledgers[which] = append_one(ledgers[which], message, tokenizer)
        seconds[which].append(perf_counter() - start)
    return median(seconds[0]), median(seconds[1])


def report(tokenizer: Tokenizer) -> str:
    """Return the figures as a Markdown section."""
    short, long = append_costs(tokenizer)
    return "\n".join(
        [
            "## Ledger",
            "",
            "One message of 400 characters counted and appended; views of 200 items (`make bench`).",
            "",
            "| history | time for one | ratio |",
            "|---|---|---|",
            f"| 200 messages | {short * 1e6:.0f} µs | 1.00 |",
            f"| 10,000 messages | {long * 1e6:.0f} µs | {long / short:.2f} |",
        ]
    )
