"""A provider's own compaction block: what it says, whether it is signed, and the message that carries it byte for byte."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lowwater.values.message import Message, Wire
from lowwater.values.parts import AnyPart, Opaque

TYPE = "compaction"


class NativeBlock(Struct, frozen=True):
    """What can be read of one; a provider may add fields that nobody here knows."""

    content: str | None = None
    encrypted_content: str | None = None
    signature: str | None = None

    @property
    def stands(self) -> bool:
        """Whether it stands for anything: one without content is a compaction that failed."""
        return bool(self.content or self.encrypted_content)


def read_block(part: AnyPart) -> NativeBlock | None:
    """Return the block that a part is, or None if it is none that stands for anything."""
    if not isinstance(part, Opaque) or part.block != TYPE:
        return None
    try:
        block = msgspec.json.decode(part.body, type=NativeBlock)
    except msgspec.MsgspecError:
        return None
    return block if block.stands else None


def newest_block(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message with a compaction block; one that failed stands for nothing."""
    for at in range(len(messages) - 1, -1, -1):
        for part in messages[at].parts:
            if isinstance(part, Opaque) and read_block(part) is not None:
                return at
    return None


def message_with(block: bytes) -> Message:
    """Return the assistant's message that is this block and nothing else, as the provider wants it back."""
    body = block.decode()
    raw = b'{"role":"assistant","content":[' + block + b"]}"
    return Message(
        role="assistant",
        parts=(Opaque(block=TYPE, body=body),),
        wire=Wire(format="anthropic", raw=raw),
    )


def block_in(message: Message) -> bytes:
    """Return the block that is all of a message, as it came; nothing if it is not."""
    match message.parts:
        case (Opaque(block="compaction", body=body),):
            return body.encode()
        case _:
            return b""


def said_in(message: Message) -> str:
    """Return a message's own text, or what its block says where it is one."""
    block = read_block(message.parts[0]) if block_in(message) else None
    return message.text if block is None else block.content or ""
