"""Conversations by the official SDKs as programs hold them: every API, in every colour, each answer handed back as it came."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import openai
from msgspec import Struct

from tests.sdk_clients import anthropic_client, async_anthropic_client, async_openai_client, openai_client

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL = f"data:image/png;base64,{PIXEL}"
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}


class Colour(Struct, frozen=True, kw_only=True):
    """How a program calls its SDK."""

    waits: bool
    """Whether it awaits answers."""
    streams: bool


class Talk(ABC):
    """One API: what is sent to it, and what its answers are to the next request."""

    def __init__(self, url: str, colour: Colour, *, model: str, **options: Any) -> None:
        self.url = url
        self.colour = colour
        self.model = model
        self.options = options
        self.listed: list[Any] = []

    def ask(self) -> list[str]:
        """Send the whole list, append the answer, and return the ids of the calls in it."""
        answer = asyncio.run(self._awaited()) if self.colour.waits else self._blocking()
        return self._append(answer)

    def work(self, questions: int, *, said: str) -> int:
        """Ask, run every tool, and go on until there is nothing to run; return how many answers that took."""
        turns = 0
        for question in range(questions):
            self.question(f"Question {question}: where is the defect?", picture=question % 2 == 0)
            while True:
                turns += 1
                calls = self.ask()
                if not calls:
                    break
                self.results([(call, f"{turns}.{at} {said}") for at, call in enumerate(calls)])
        return turns

    @abstractmethod
    def question(self, text: str, *, picture: bool) -> None:
        """Append what the user says."""

    @abstractmethod
    def results(self, said: Sequence[tuple[str, str]]) -> None:
        """Append what tools said."""

    @abstractmethod
    def _blocking(self) -> Any: ...

    @abstractmethod
    async def _awaited(self) -> Any: ...

    @abstractmethod
    def _append(self, answer: Any) -> list[str]: ...


class MessagesTalk(Talk):
    """Anthropic's SDK."""

    def question(self, text: str, *, picture: bool) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        image = [{"type": "image", "source": source}] if picture else []
        self.listed.append({"role": "user", "content": [*image, {"type": "text", "text": text}]})

    def results(self, said: Sequence[tuple[str, str]]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in said]
        self.listed.append({"role": "user", "content": blocks})

    def _fields(self) -> dict[str, Any]:
        tools = [
            {"name": name, "description": "Looks.", "input_schema": PARAMETERS} for name in ("read", "look")
        ]
        given = {"model": self.model, "max_tokens": 2_000, "system": "You work.", "tools": tools}
        return {**given, "messages": self.listed, **self.options}

    def _blocking(self) -> Any:
        with anthropic_client(self.url, api_key="sk-one") as client:
            if not self.colour.streams:
                return client.messages.create(**self._fields())
            with client.messages.stream(**self._fields()) as stream:
                return stream.get_final_message()

    async def _awaited(self) -> Any:
        async with async_anthropic_client(self.url, api_key="sk-one") as client:
            if not self.colour.streams:
                return await client.messages.create(**self._fields())
            async with client.messages.stream(**self._fields()) as stream:
                return await stream.get_final_message()

    def _append(self, answer: Any) -> list[str]:
        self.listed.append({"role": "assistant", "content": answer.content})
        return [block.id for block in answer.content if block.type == "tool_use"]


class _OpenAiTalk(Talk):
    def _client(self) -> openai.OpenAI:
        return openai_client(self.url, api_key="sk-one")

    def _async_client(self) -> openai.AsyncOpenAI:
        return async_openai_client(self.url, api_key="sk-one")


class ChatTalk(_OpenAiTalk):
    """OpenAI's SDK with Chat Completions."""

    def question(self, text: str, *, picture: bool) -> None:
        image = [{"type": "image_url", "image_url": {"url": URL}}] if picture else []
        self.listed.append({"role": "user", "content": [{"type": "text", "text": text}, *image]})

    def results(self, said: Sequence[tuple[str, str]]) -> None:
        self.listed += [{"role": "tool", "tool_call_id": call, "content": text} for call, text in said]

    def _fields(self) -> dict[str, Any]:
        tools = [
            {"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
            for name in ("read", "look")
        ]
        system = {"role": "developer", "content": "You work."}
        return {
            "model": self.model,
            "tools": tools,
            "messages": [system, *self.listed],
            **({"stream_options": {"include_usage": True}} if self.colour.streams else {}),
            **self.options,
        }

    def _blocking(self) -> Any:
        with self._client() as client:
            if not self.colour.streams:
                return client.chat.completions.create(**self._fields())
            with client.chat.completions.stream(**self._fields()) as stream:
                return stream.get_final_completion()

    async def _awaited(self) -> Any:
        async with self._async_client() as client:
            if not self.colour.streams:
                return await client.chat.completions.create(**self._fields())
            async with client.chat.completions.stream(**self._fields()) as stream:
                return await stream.get_final_completion()

    def _append(self, answer: Any) -> list[str]:
        message = answer.choices[0].message
        self.listed.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        return [call.id for call in message.tool_calls or ()]


class ResponsesTalk(_OpenAiTalk):
    """OpenAI's SDK with Responses, the whole list every time."""

    def question(self, text: str, *, picture: bool) -> None:
        image = [{"type": "input_image", "image_url": URL, "detail": "auto"}] if picture else []
        self.listed.append({"role": "user", "content": [{"type": "input_text", "text": text}, *image]})

    def results(self, said: Sequence[tuple[str, str]]) -> None:
        self.listed += [
            {"type": "function_call_output", "call_id": call, "output": text} for call, text in said
        ]

    def _fields(self) -> dict[str, Any]:
        tools = [
            {"type": "function", "name": name, "parameters": PARAMETERS, "strict": False}
            for name in ("read", "look")
        ]
        sealed = {"store": False, "include": ["reasoning.encrypted_content"]}
        given = {"model": self.model, "instructions": "You work.", "tools": tools, **sealed}
        return {**given, "input": self.listed, **self.options}

    def _blocking(self) -> Any:
        with self._client() as client:
            if not self.colour.streams:
                return client.responses.create(**self._fields())
            with client.responses.stream(**self._fields()) as stream:
                return stream.get_final_response()

    async def _awaited(self) -> Any:
        async with self._async_client() as client:
            if not self.colour.streams:
                return await client.responses.create(**self._fields())
            async with client.responses.stream(**self._fields()) as stream:
                return await stream.get_final_response()

    def _append(self, answer: Any) -> list[str]:
        self.listed += [item.to_dict() for item in answer.output]
        return [item.call_id for item in answer.output if item.type == "function_call"]
