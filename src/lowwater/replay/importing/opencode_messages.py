"""OpenCode's messages as it sends them: answers taken apart into the calls they were made of, compactions found."""

from collections.abc import Iterator, Sequence

from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage
from lowwater.replay.importing.decoding import decoded_object
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.opencode_told import File, MessageInfo, Part, State, Told
from lowwater.replay.importing.playable import between_tags
from lowwater.replay.importing.times import seconds

_ASKS_FOR_SUMMARY, _RAN_A_TOOL = "What did we do so far?", "The following tool was executed by the user"
_INTERRUPTED = "[Tool execution was interrupted]"
_AT_ONCE = 5.0
"""Seconds between outputs that one prune clears."""
_NOT_SENT = ("text/plain", "application/x-directory")
"""Files of these types stand as text beside their part."""


class Conversation:
    """A session's messages as they are put together."""

    def __init__(self, file: RecordedFile, told: Sequence[Told]) -> None:
        self.messages: list[RecordedMessage] = []
        self.compactions: list[NativeCompaction] = []
        self._file = file
        self._summed_up = {one.info.parent for one in told if one.info.is_summary}
        self._asked = {one.info.id for one in told if any(part.type == "compaction" for part in one.parts)}
        for one in told:
            if one.info.role == "user":
                self._ask(one)
            elif one.info.role == "assistant":
                self._answer(one)
            else:
                file.broken(one.where, "neither of the user nor of the assistant")
        self.compactions += list(self._prunes(told))
        self.compactions.sort(key=lambda compaction: compaction.index)

    def _ask(self, told: Told) -> None:
        request = next((part for part in told.parts if part.type == "compaction"), None)
        texts = [part for part in told.parts if part.type == "text" and not part.ignored]
        kind = "meta" if texts and all(part.synthetic for part in texts) else ""
        if request is not None:
            kind = "synthetic"
            if told.info.id in self._summed_up:
                kind = "compact_summary"
                self._compacted(told.info, trigger="manual" if request.auto is False else "auto")
        blocks = [block for part in told.parts if (block := _block(part, marked=not kind)) is not None]
        if blocks:
            self._add({"role": "user", "content": blocks}, told.where, at=told.info.begun, kind=kind)

    def _answer(self, told: Told) -> None:
        info = told.info
        if not _is_sent(told):
            return
        if info.is_summary and info.parent not in self._asked:
            self._compacted(info, trigger="")  # before 1.0 the summary itself was all there is
        steps = list(_steps(told.parts))
        asked_at = info.begun
        for step in steps:
            asked_at = self._step(step, told, asked_at, alone=len(steps) == 1)

    def _step(self, step: Sequence[Part], told: Told, asked_at: float | None, *, alone: bool) -> float | None:
        """Add what one call answered and what its tools returned; return when the last of them did."""
        info = told.info
        finished = next((part.tokens for part in step if part.type == "step-finish" and part.tokens), None)
        tokens = finished or (info.tokens if alone else None)
        call = RecordedCall(model=info.model or "", usage=tokens.usage if tokens else None, asked_at=asked_at)
        kind = "compact_summary" if info.is_summary else ""
        at = _answered(step) or (seconds(info.time.completed) if info.time else None) or info.begun
        if not self._add(_answer_of(step), told.where, at=at, kind=kind, call=call):
            return asked_at
        ended = [at]
        for part in step:
            if part.type == "tool":
                state = part.state or State()
                ran = seconds(state.time.end) if state.time else None
                is_done = state.status in ("completed", "error")
                result = {"role": "tool", "tool_call_id": part.call, "name": part.tool, **_result(state)}
                self._add(result, told.where, at=ran or at, kind=kind if is_done else "synthetic")
                ended.append(ran)
        return max((time for time in ended if time is not None), default=asked_at)

    def _add(
        self, shaped: object, where: str, *, at: float | None, kind: str, call: RecordedCall | None = None
    ) -> bool:
        message = decoded_object(shaped, file=self._file, where=where)
        if message is not None:
            self.messages.append(RecordedMessage(message=message, at=at, call=call, kind=kind))
        return message is not None

    def _prunes(self, told: Sequence[Told]) -> Iterator[NativeCompaction]:
        """Yield the prunes: results whose output was cleared, those at one time together."""
        cleared = sorted(
            (at, part.call)
            for one in told
            for part in one.parts
            if part.state and part.state.time and (at := seconds(part.state.time.compacted)) is not None
        )
        ended: float | None = None
        calls: list[str] = []
        for at, call in cleared:
            if ended is not None and at - ended > _AT_ONCE:
                yield self._prune(ended, calls)
                calls = []
            ended = at
            calls.append(call)
        if ended is not None:
            yield self._prune(ended, calls)

    def _prune(self, at: float, calls: Sequence[str]) -> NativeCompaction:
        later = (index for index, one in enumerate(self.messages) if one.at is not None and one.at > at)
        index = next(later, len(self.messages))
        usages = (one.call.usage for one in reversed(self.messages[:index]) if one.call and one.call.usage)
        last = next(usages, None)
        return NativeCompaction(
            index=index,
            kind="prune",
            at=at,
            trigger="auto",
            before=last.prompt if last else None,
            cleared=tuple(calls),
        )

    def _compacted(self, info: MessageInfo, *, trigger: str) -> None:
        calls = (one.call.usage for one in reversed(self.messages) if one.call and one.call.usage)
        last = next(calls, None)
        self.compactions.append(
            NativeCompaction(
                index=len(self.messages), at=info.begun, trigger=trigger, before=last.prompt if last else None
            )
        )


def _steps(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the parts of each call; before 1.0 one message held all calls of an answer."""
    step: list[Part] = []
    for part in parts:
        if part.type == "step-start" and _has_content(step):
            yield step
            step = []
        step.append(part)
    if _has_content(step):
        yield step


def _has_content(step: Sequence[Part]) -> bool:
    return any(part.type in ("text", "reasoning", "tool") for part in step)


def _is_sent(told: Told) -> bool:
    """Tell whether an answer goes on being sent: one that failed does not, one that was stopped in its midst does."""
    error = told.info.error
    if error is None:
        return True
    stopped = isinstance(error, dict) and error.get("name") == "MessageAbortedError"
    return stopped and any(part.type in ("text", "tool") for part in told.parts)


def _answer_of(step: Sequence[Part]) -> dict[str, object]:
    texts = [{"type": "text", "text": part.text} for part in step if part.type == "text" and part.text]
    thoughts = [part.text for part in step if part.type == "reasoning" and part.text]
    calls = [_call(part) for part in step if part.type == "tool"]
    answer: dict[str, object] = {"role": "assistant", "content": texts or None}
    if thoughts:
        answer["reasoning_content"] = "\n".join(thoughts)
    if calls:
        answer["tool_calls"] = calls
    return answer


def _call(part: Part) -> dict[str, object]:
    arguments = bytes((part.state or State()).input).decode(errors="replace")
    return {"id": part.call, "type": "function", "function": {"name": part.tool, "arguments": arguments}}


def _result(state: State) -> dict[str, object]:
    if state.status == "completed":
        pictures = [block for file in state.attachments or () if (block := _file(file)) is not None]
        return {"content": [{"type": "text", "text": state.output or ""}, *pictures]}
    return {"content": (state.error if state.status == "error" else None) or _INTERRUPTED, "is_error": True}


def _block(part: Part, *, marked: bool) -> dict[str, object] | None:
    """Return a part of the user's message; what OpenCode adds to the user's words, such as a file's text, is `marked`."""
    match part.type:
        case "text" if part.synthetic and marked and part.text and not part.ignored:
            return {"type": "text", "text": between_tags(part.text)}
        case "text":
            return {"type": "text", "text": part.text} if part.text and not part.ignored else None
        case "file":
            return _file(File(mime=part.mime, url=part.url, filename=part.filename))
        case "compaction":
            return {"type": "text", "text": _ASKS_FOR_SUMMARY}
        case "subtask":
            return {"type": "text", "text": _RAN_A_TOOL}
        case _:
            return None


def _file(file: File) -> dict[str, object] | None:
    if not file.url or file.mime in _NOT_SENT:
        return None
    if file.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": file.url}}
    return {"type": "file", "file": {"filename": file.filename or "", "file_data": file.url}}


def _answered(step: Sequence[Part]) -> float | None:
    """Return when the model had said all of it: the end of its last text, or the start of its last tool."""
    told = []
    for part in step:
        if part.type in ("text", "reasoning") and part.time is not None:
            told.append(seconds(part.time.end))
        elif part.type == "tool" and part.state is not None and part.state.time is not None:
            told.append(seconds(part.state.time.start))
    return max((time for time in told if time is not None), default=None)
