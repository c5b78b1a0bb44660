"""Sizes the parts of a message one by one."""

from lowwater.count.message import count_message
from lowwater.ports import Tokenizer
from lowwater.values.message import Message


def count_parts(message: Message, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the size of every part; what stands around the message counts with its first, so the sum is the message's."""
    around = count_message(message.with_parts(()), tokenizer)
    sizes = [count_message(message.with_parts((part,)), tokenizer) - around for part in message.parts]
    return (sizes[0] + around, *sizes[1:]) if sizes else ()
