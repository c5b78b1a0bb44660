"""The session: its history keeps every item, the model is sent the view."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec
from agents import (
    Agent,
    FunctionTool,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    SQLiteSession,
    Tool,
)
from agents.items import TResponseInputItem
from agents.memory import Session as History
from agents.memory import SessionSettings
from agents.run_config import CallModelData, ModelInputData, RunOptions
from agents.tool_context import ToolContext

from lowwater.core.api_calls import Usage
from lowwater.core.messages import (
    Document,
    Format,
    Message,
    ResultPart,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.integrations.framework import (
    FrameworkSessions,
    MappedMessage,
    ModelAnswer,
    OutgoingRequest,
    RequestPreamble,
    SourcePart,
    ViewMessage,
    answer_for,
    aprepare_call,
    function_tool,
    image_from_url,
    map_message,
    recall_functions,
    session_format,
    system_of,
    with_changes,
)
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

Item: TypeAlias = Any
"""A dict that the SDK types as a union of some forty."""
Source: TypeAlias = tuple[Item, ...]

APART = 1_000
"""A part's position is the index of its item in the message times this, plus the index of its block in the item."""

_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}
_NAMES = ("type", "id", "call_id", "name", "status")
"""Fields that identify a call."""
Context = RunContextWrapper[Any]


def map_messages(items: Iterable[Item], format: Format) -> list[MappedMessage[Source]]:
    """Return a conversation's items as mapped messages; items of one assistant turn become one message."""
    conversation: list[MappedMessage[Source]] = []
    assistant_items: list[Item] = []
    for item in items:
        role = _role(item)
        if role == "assistant":
            assistant_items.append(item)
            continue
        if assistant_items:
            conversation.append(_map_assistant(assistant_items, format))
            assistant_items = []
        conversation.append(_map_other(item, role, format))
    return [*conversation, _map_assistant(assistant_items, format)] if assistant_items else conversation


def model_answer(response: ModelResponse, format: Format) -> ModelAnswer:
    """Return an answer with its usage, for the session to record."""
    usage = response.usage
    read = usage.input_tokens_details.cached_tokens or 0
    written = getattr(usage.input_tokens_details, "cache_write_tokens", 0) or 0
    figures = Usage(
        uncached=max(0, usage.input_tokens - read - written),
        cache_read=read,
        cache_write=written,
        output=usage.output_tokens,
    )
    message = _map_assistant(response.to_input_items(), format).message
    return ModelAnswer(message=message, usage=figures if usage.input_tokens else None)


def blocks_of(item: Item) -> list[Any]:
    """Return an item's content as blocks; a text is one block."""
    content = item.get("output") if item.get("type") == "function_call_output" else item.get("content")
    if content is None:
        return []
    return list(content) if isinstance(content, list) else [content]


def _role(item: Item) -> str:
    """Return an item's role; items without one are calls of the model or outputs of its tools."""
    kind = str(item.get("type") or "message")
    if kind == "message":
        return str(item.get("role", "user"))
    return "tool" if kind.endswith("_output") else "assistant"


def _map_other(item: Item, role: str, format: Format) -> MappedMessage[Source]:
    if role == "tool" and item.get("call_id"):
        parts = tuple(_part(block) for block in blocks_of(item)) or (_part(item),)
        result = ToolResult(call_id=item["call_id"], parts=parts)
        return map_message((item,), "tool", [SourcePart(part=result)], format)
    pieces = [SourcePart(part=_part(block), at=(at,)) for at, block in enumerate(blocks_of(item))]
    return map_message((item,), _ROLES.get(role, "user"), pieces, format)


def _map_assistant(items: Sequence[Item], format: Format) -> MappedMessage[Source]:
    pieces = [piece for at, item in enumerate(items) for piece in _pieces(item, at * APART)]
    return map_message(tuple(items), "assistant", pieces, format)


def _pieces(item: Item, at: int) -> Iterator[SourcePart]:
    match item.get("type"):
        case "reasoning":
            yield SourcePart(part=Thinking(text=_reasoning_text(item)), at=(at,))
        case "function_call":
            call = ToolCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
            yield SourcePart(part=call, at=(at,))
        case "message" | None:
            for within, block in enumerate(blocks_of(item)):
                yield SourcePart(part=_part(block), at=(at + within,))
        case kind if str(kind).endswith("_call") and item.get("call_id"):
            arguments = json.dumps(item, sort_keys=True, default=str)
            yield SourcePart(part=ToolCall(id=item["call_id"], name=str(kind), arguments=arguments), at=(at,))
        case _:
            yield SourcePart(part=_part(item), at=(at,))


def _reasoning_text(item: Mapping[str, Any]) -> str:
    """Return the readable part of the reasoning; the size of the encrypted part is unknown."""
    blocks = [*(item.get("summary") or ()), *(item.get("content") or ())]
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))


def _part(block: Any) -> ResultPart:  # noqa: ANN401 - whatever the API knows
    match block:
        case str():
            return Text(text=block)
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "refusal", "refusal": str(text)}:
            return Text(text=text)
        case {"type": "input_image", "image_url": str(url)}:
            return image_from_url(url)
        case {"type": "input_file", "file_data": str(data)}:
            file = image_from_url(data)
            return Document(source="base64", data=file.data, media_type=file.media_type or "application/pdf")
        case _:
            return Text(text=json.dumps(block, sort_keys=True, default=str))


def items_of(sent: OutgoingRequest[Source]) -> list[Item]:
    """Return the items to send."""
    items: list[Item] = []
    for at, shown in enumerate(sent.view):
        written = _written(shown)
        if sent.is_folded(at) and items and written:
            written[0] = _joined(items.pop(), written[0])
        items.extend(written)
    return items


def _joined(before: Item, item: Item) -> Item:
    """Return two user items merged into one."""
    content = [
        {"type": "input_text", "text": block} if isinstance(block, str) else block
        for each in (before, item)
        for block in _blocks(each)
    ]
    return {**before, **item, "content": content}


def _blocks(item: Item) -> list[object]:
    content = item.get("content")
    return list(content) if isinstance(content, list) else [content]


def _written(shown: ViewMessage[Source]) -> list[Item]:
    if shown.source is None:
        return _new(shown.message)
    if not shown.is_changed:
        return list(shown.source)
    if str(shown.source[0].get("type")).endswith("_output"):
        return [_with_output(shown.source[0], shown.changes)]
    return _changed([_called(item, shown.calls) for item in shown.source], shown.changes)


def _called(item: Item, calls: Mapping[str, str]) -> Item:
    """Return a call with replaced arguments; a call that is not a function's was mapped as its JSON."""
    arguments = calls.get(str(item.get("call_id") or ""))
    if arguments is None:
        return item
    if item["type"] == "function_call":
        return {**item, "arguments": arguments}
    return {**json.loads(arguments), **{key: item[key] for key in _NAMES if key in item}}


def _with_output(item: Item, changes: Mapping[int, str | None]) -> Item:
    """Return a tool's output with changes; of an output that is not a function's only a text can be replaced."""
    if item["type"] == "function_call_output":
        return {**item, "output": _output(item, changes)}
    text = changes.get(0)
    return {**item, "output": text} if text is not None and isinstance(item.get("output"), str) else item


def _output(item: Item, changes: Mapping[int, str | None]) -> object:
    """Return a function's output with replaced texts; a single text stays a string."""
    blocks = _with_changes(item, changes, "input_text")
    match blocks:
        case [{"type": "input_text", "text": str(text)}]:
            return text
        case _:
            return blocks


def _changed(items: Sequence[Item], changes: Mapping[int, str | None]) -> list[Item]:
    """Return items without what was dropped.

    What is left of an answer whose reasoning went loses its ids: by them the API would miss the reasoning.
    """
    left: list[Item] = []
    dropped = False
    for at, item in enumerate(items):
        here = {place % APART: text for place, text in changes.items() if place // APART == at}
        if not here:
            left.append(item)
        elif item.get("type") == "reasoning":
            dropped = True
        elif item.get("type", "message") == "message":
            kind = "output_text" if item.get("role") == "assistant" else "input_text"
            left.append({**item, "content": _with_changes(item, here, kind)})
        else:
            # A call of the provider's own tools was mapped as its JSON; shortened, it is no longer a valid item.
            left.append({"role": "assistant", "content": here.get(0) or ""})
    return [{key: value for key, value in item.items() if key != "id"} for item in left] if dropped else left


def _with_changes(item: Item, changes: Mapping[int, str | None], kind: str) -> list[Item]:
    """Return an item's blocks with replaced texts, each text as a block of this type."""

    def written(text: str) -> Item:
        return {"type": kind, "text": text}

    blocks = [written(block) if isinstance(block, str) else block for block in blocks_of(item)]
    return list(with_changes(blocks, changes, written))


def _new(message: Message) -> list[Item]:
    """Return items for what Lowwater wrote: a summary, or the output of a call that has none."""
    outputs = [
        {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
        for result in message.results
    ]
    if outputs and not message.text:
        return outputs
    role = message.role if message.role in {"assistant", "system"} else "user"
    return [*outputs, {"role": role, "content": message.text}]


class RecordingHooks(RunHooks[Any]):
    """Hooks that pass every answer to `record`, and every event to the user's own hooks (`theirs`)."""

    def __init__(
        self, record: Callable[[ModelResponse], Awaitable[None]], theirs: RunHooks[Any] | None
    ) -> None:
        self._record = record
        self._theirs: RunHooks[Any] = theirs or RunHooks()

    async def on_llm_start(
        self,
        context: Context,
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        """Pass it on."""
        await self._theirs.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Context, agent: Agent[Any], response: ModelResponse) -> None:
        """Record the answer, and pass it on."""
        await self._record(response)
        await self._theirs.on_llm_end(context, agent, response)

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:  # noqa: ANN401 - as in the SDK
        """Pass it on."""
        await self._theirs.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:  # noqa: ANN401 - likewise
        """Pass it on."""
        await self._theirs.on_agent_end(context, agent, output)

    async def on_handoff(self, context: Context, from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        """Pass it on."""
        await self._theirs.on_handoff(context, from_agent, to_agent)

    async def on_tool_start(self, context: Context, agent: Agent[Any], tool: Tool) -> None:
        """Pass it on."""
        await self._theirs.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Context, agent: Agent[Any], tool: Tool, result: object) -> None:
        """Pass it on."""
        await self._theirs.on_tool_end(context, agent, tool, result)


class LowwaterSession:
    """A session of the SDK over a Lowwater session of the same name; run with `**session.run_options()`.

    The items themselves are kept whole by `history`, any session of the SDK; without one, by a `SQLiteSession` in memory.
    An agent that runs as a tool of another has a conversation, and a Lowwater session, of its own. Histories that a server
    keeps (`conversation_id`, `previous_response_id`) cannot be compacted from here.
    """

    def __init__(self, session_id: str, lowwater: Lowwater, *, history: History | None = None) -> None:
        self.session_id = session_id
        self._sessions = FrameworkSessions(lowwater, source="openai-agents")
        self.session = self._sessions.session(session_id)
        """The Lowwater session: status, checkpoints, rewind, recall."""
        self._history: History = SQLiteSession(session_id) if history is None else history
        self.session_settings: SessionSettings | None = getattr(self._history, "session_settings", None)
        self._first: Item = None
        self._under_way: Session | None = None

    def run_options(
        self, *, run_config: RunConfig | None = None, hooks: RunHooks[Any] | None = None
    ) -> RunOptions[Any]:
        """Return options for `Runner.run`, `run_sync` and `run_streamed`: this session, its filter, and its hooks around yours."""
        config = copy(run_config) if run_config else RunConfig()
        config.call_model_input_filter = self.filter
        return {"session": self, "run_config": config, "hooks": RecordingHooks(self.record, hooks)}

    def recall_tools(self) -> list[FunctionTool]:
        """Return the recall tools, for `Agent(tools=…)`."""
        return [
            FunctionTool(
                name=each["name"],
                description=each["description"],
                params_json_schema=each["parameters"],
                on_invoke_tool=self._recall,
                strict_json_schema=False,
            )
            for each in recall_functions()
        ]

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input to send; to be used as the `call_model_input_filter` of a run."""
        items = data.model_data.input
        asked = getattr(data.agent.model, "model", data.agent.model)
        self._under_way = session = self._sessions.session_for_model(
            self._name(items, data.agent), asked if isinstance(asked, str) else ""
        )
        preamble = RequestPreamble(
            system=data.model_data.instructions or "",
            tools=_tools(data.agent),
            max_tokens=data.agent.model_settings.max_tokens,
        )
        sent = await aprepare_call(session, map_messages(items, session_format(session)), preamble)
        return ModelInputData(input=items_of(sent), instructions=system_of(sent) or None)

    async def record(self, response: Any) -> None:  # noqa: ANN401 - the SDK's ModelResponse
        """Record an answer with its usage; the hooks of a run do it."""
        if self._under_way is not None:
            await self._under_way.arecord(answer_for(self._under_way, model_answer, response))

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the whole history, or its newest items; a run begins with it."""
        items = list(await self._history.get_items(limit))
        if limit is None or (self.session_settings is not None and limit == self.session_settings.limit):
            self._first = items[0] if items else None
        return items

    async def add_items(self, items: list[Item]) -> None:
        """Add new items to the history."""
        await self._history.add_items(items)

    async def pop_item(self) -> Item:
        """Remove the newest item and return it."""
        return await self._history.pop_item()

    async def clear_session(self) -> None:
        """Forget the history; the ledger of the Lowwater session keeps what it had."""
        self._first = None
        await self._history.clear_session()

    def _name(self, items: list[Item], agent: Agent[Any]) -> str:
        """Return the name of the items' session: another one if they do not begin as this run did."""
        first = items[0] if items else None
        if self._first is None:
            self._first = first
        if first == self._first:
            return self.session_id
        file = blake2b(msgspec.json.encode(first, enc_hook=str), digest_size=8).hexdigest()
        return f"{self.session_id}/{agent.name}/{file}"

    async def _recall(self, context: ToolContext[Any], arguments: str) -> str:
        return await asyncio.to_thread(self.session.recall_tools().handle, context.tool_name, arguments)


def _tools(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Return the agent's own tools in the chat format; the size of what the SDK adds is learned from usage."""
    return [
        function_tool(tool.name, tool.description, tool.params_json_schema)
        for tool in agent.tools
        if isinstance(tool, FunctionTool)
    ]
