"""`lowwater demo`: a long session filling a window, and what is in it."""

from rich.console import Console
from rich.text import Text

from lowwater.cli.inspect import fill_of, show
from lowwater.count.message import count_message
from lowwater.load.registry import load_registry
from lowwater.testing.sessions import generate_session
from lowwater.values.groups import turns
from lowwater.wire.conversation import decode_conversation
from lowwater.wiring.counting import counter_for

MODEL = "claude-haiku-4-5"
_WINDOW_SHARE = 0.85
_BAR = 60


def demo() -> None:
    """Watch a generated coding session fill a window, without a key and without a network."""
    console = Console(highlight=False)
    model = load_registry().find(MODEL)
    tokenizer = counter_for(MODEL)
    console.print(
        Text(
            f"A coding agent at work on {MODEL}, {model.context_length:,} tokens of context:\n", style="bold"
        )
    )
    session = generate_session(
        "coding", seed=20261115, model=MODEL, target_tokens=int(_WINDOW_SHARE * model.context_length)
    )
    conversation = decode_conversation(session.as_canonical_jsonl())
    spans = turns(conversation.messages)
    step = max(1, len(spans) // 12)
    tokens = 0
    for number, span in enumerate(spans, start=1):
        tokens += sum(
            count_message(message, tokenizer) for message in conversation.messages[span.start : span.stop]
        )
        if number % step == 0 or number == len(spans):
            console.print(_line(number, tokens, model.context_length))
    console.print()
    filled = fill_of(conversation, tokenizer)
    show(
        filled,
        title=f"What fills it ({filled.tokens:,} tokens; `lowwater inspect FILE` shows it for yours)",
        context=model.context_length,
    )


def _line(turn: int, tokens: int, context: int) -> Text:
    share = tokens / context
    colour = "red" if share > 0.8 else "yellow" if share > 0.5 else "green"
    cells = min(_BAR, round(_BAR * share))
    bar = Text("█" * cells, style=colour) + Text("░" * (_BAR - cells), style="bright_black")
    return Text(f"turn {turn:>4}  ") + bar + Text(f"  {tokens:>9,}")
