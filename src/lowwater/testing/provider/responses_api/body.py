"""Reading a Responses request: its items, what they are, and the prompt they make."""

from collections.abc import Iterator, Sequence

from lowwater.testing.provider.prompt import BREAKPOINT, Piece
from lowwater.testing.provider.responses_api.memory import Memory
from lowwater.testing.provider.responses_api.sealing import Sealing
from lowwater.testing.provider.rule import Json

CALLS = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
OF_MODEL = (*CALLS, "reasoning", "web_search_call", "file_search_call", "code_interpreter_call")
TYPES = (
    "message",
    *OF_MODEL,
    *OUTPUTS,
    "computer_call",
    "computer_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "compaction",
    "additional_tools",
    "item_reference",
)
_KINDS = {"input_text": "text", "output_text": "text", "input_image": "image", "input_file": "file"}
_UNSEEN = ("id", "status", "annotations", "logprobs", "phase", "prompt_cache_breakpoint")
"""What a model is not shown of an item or of its content."""


def items_of(body: Json) -> list[Json]:
    """Return the items that were sent; a text is a message of the user."""
    sent = body.get("input")
    if isinstance(sent, str):
        return [{"type": "message", "role": "user", "content": sent}]
    return list(sent or [])


def tools_in(body: Json) -> Iterator[Json]:
    """Yield every tool that the model may call: those of the request, of items that bring more, and of namespaces."""
    brought = [item.get("tools") or [] for item in items_of(body) if kind_of(item) == "additional_tools"]
    for tool in [*(body.get("tools") or []), *(tool for tools in brought for tool in tools)]:
        yield from (tool.get("tools") or []) if tool.get("type") == "namespace" else [tool]


def kind_of(item: Json) -> str:
    """Return an item's type, which messages and references may leave out."""
    if "type" in item:
        return str(item["type"])
    return "message" if "role" in item else "item_reference"


def is_of_model(item: Json) -> bool:
    """Return whether the model wrote it."""
    kind = kind_of(item)
    return kind in OF_MODEL or (kind == "message" and item.get("role") == "assistant")


def resolved(body: Json, memory: Memory) -> list[Json]:
    """Return all items that the model is asked with: remembered ones, then those that were sent."""
    found = list(memory.conversation(body.get("previous_response_id")) or [])
    for item in items_of(body):
        found.append((memory.item(item["id"]) or item) if kind_of(item) == "item_reference" else item)
    return found


def content_of(item: Json) -> list[Json]:
    """Return the content of a message or of a tool's output as parts; a string is one, an empty string none."""
    kind = kind_of(item)
    content = item.get("content") if kind == "message" else item.get("output") if kind in OUTPUTS else None
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


def breakpoints(body: Json) -> Iterator[str]:
    """Yield where explicit cache breakpoints stand."""
    for at, item in enumerate(items_of(body)):
        for index, part in enumerate(content_of(item)):
            if part.get("prompt_cache_breakpoint") is not None:
                yield f"input[{at}].content[{index}]"


def pieces(body: Json, items: Sequence[Json], sealing: Sealing) -> list[Piece]:
    """Return the prompt in the order the model reads it."""
    found = [
        Piece(section="tools", path=f"tools[{at}]", value=tool)
        for at, tool in enumerate(body.get("tools") or [])
    ]
    if body.get("instructions"):
        said = {"type": "text", "text": body["instructions"]}
        found.append(Piece(section="system", path="instructions", value=said))
    for at, item in enumerate(items):
        found += item_pieces(item, at, sealing)
    return found


def item_pieces(item: Json, at: int, sealing: Sealing) -> list[Piece]:
    """Return the pieces of one item: a message's or an output's parts, what was thought, or the item itself."""
    kind = kind_of(item)
    if kind == "message" or kind in OUTPUTS:
        role = f"{item.get('role', 'tool')} {item.get('call_id', '')}".strip()
        return [
            _piece(f"input[{at}].{index}", role, _shown(part), mark=_mark(part))
            for index, part in enumerate(content_of(item))
        ]
    if kind in ("reasoning", "compaction"):
        hidden = sealing.opened(str(item.get("encrypted_content") or "")) or ""
        return [_piece(f"input[{at}]", kind, {"type": "text", "text": hidden})]
    seen = {name: value for name, value in item.items() if name not in _UNSEEN}
    return [_piece(f"input[{at}]", "assistant", seen)]


def _piece(path: str, role: str, value: Json, mark: str = "") -> Piece:
    return Piece(section="messages", path=path, role=role, value=value, mark=mark)


def _shown(part: Json) -> Json:
    seen = {name: value for name, value in part.items() if name not in _UNSEEN}
    return {**seen, "type": _KINDS.get(str(part.get("type")), part.get("type"))}


def _mark(part: Json) -> str:
    return BREAKPOINT if part.get("prompt_cache_breakpoint") is not None else ""
