"""Responses rules about the conversation: calls and outputs, reasoning and what it led to, what is remembered."""

from collections.abc import Iterator

from lowwater.testing.provider.openai.body import invalid
from lowwater.testing.provider.responses_api.body import (
    CALLS,
    OUTPUTS,
    is_of_model,
    items_of,
    kind_of,
    resolved,
)
from lowwater.testing.provider.responses_api.memory import Memory
from lowwater.testing.provider.responses_api.sealing import Sealing
from lowwater.testing.provider.rule import Incoming, Json, Rule, Violation

_LED_BY = "_by_"
"""Stands in the id of an item between its own and that of the reasoning that led to it."""


def led_by(item_id: str, reasoning_id: str) -> str:
    """Return an item's id that tells which reasoning led to it."""
    return f"{item_id}{_LED_BY}{reasoning_id}" if reasoning_id else item_id


class Conversation:
    """The rules that need to know what this provider has said before."""

    def __init__(self, memory: Memory, sealing: Sealing) -> None:
        self._memory = memory
        self._sealing = sealing
        self.rules: tuple[Rule, ...] = (
            self.previous_response_known,
            self.references_known,
            self.item_ids_unique,
            self.sealed_here,
            self.outputs_called,
            self.calls_answered,
            self.reasoning_followed,
            self.reasoning_given,
        )

    def previous_response_known(self, incoming: Incoming) -> Iterator[Violation]:
        """What a request goes on with is remembered."""
        previous = incoming.body.get("previous_response_id")
        if previous is not None and self._memory.conversation(previous) is None:
            yield invalid(
                f"Previous response with id '{previous}' not found.",
                "previous_response_id",
                "previous_response_not_found",
            )
        if incoming.body.get("conversation") is not None:
            named = incoming.body["conversation"]
            yield Violation(status=404, message=f"Conversation with id '{named}' not found.")

    def references_known(self, incoming: Incoming) -> Iterator[Violation]:
        """What an item refers to is remembered; reasoning without its content is such a reference too."""
        for item in items_of(incoming.body):
            bare = kind_of(item) == "reasoning" and not item.get("encrypted_content")
            if (bare or kind_of(item) == "item_reference") and self._memory.item(item["id"]) is None:
                yield Violation(
                    status=404,
                    message=f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to "
                    "false. Try again with `store` set to true, or remove this item from your input.",
                    param="input",
                )

    def item_ids_unique(self, incoming: Incoming) -> Iterator[Violation]:
        """No item is there twice."""
        seen: set[str] = set()
        for item in self._items(incoming):
            named = str(item.get("id") or "")
            if named and named in seen:
                yield invalid(
                    f"Duplicate item found with id {named}. Remove duplicate items from your input and try again.",
                    "input",
                )
            seen.add(named)

    def sealed_here(self, incoming: Incoming) -> Iterator[Violation]:
        """Encrypted content is this provider's own, and whole."""
        for item in items_of(incoming.body):
            content = item.get("encrypted_content")
            if content and self._sealing.opened(str(content)) is None:
                yield invalid(
                    f"The encrypted content for item {item.get('id')} could not be verified. "
                    "Reason: Encrypted content could not be decrypted or parsed.",
                    code="invalid_encrypted_content",
                )

    def outputs_called(self, incoming: Incoming) -> Iterator[Violation]:
        """An output belongs to a call before it."""
        called: set[str] = set()
        for item in self._items(incoming):
            if kind_of(item) in CALLS:
                called.add(str(item.get("call_id")))
            elif kind_of(item) in OUTPUTS and str(item.get("call_id")) not in called:
                yield invalid(
                    f"No tool call found for {_words(kind_of(item))} with call_id {item.get('call_id')}.",
                    "input",
                )

    def calls_answered(self, incoming: Incoming) -> Iterator[Violation]:
        """Every call has an output."""
        answered = {str(item.get("call_id")) for item in self._items(incoming) if kind_of(item) in OUTPUTS}
        for item in self._items(incoming):
            if kind_of(item) in CALLS and str(item.get("call_id")) not in answered:
                yield invalid(
                    f"No tool output found for {_words(kind_of(item))} {item.get('call_id')}.", "input"
                )

    def reasoning_followed(self, incoming: Incoming) -> Iterator[Violation]:
        """Reasoning stands before what it led to."""
        items = self._items(incoming)
        for at, item in enumerate(items):
            follows = items[at + 1] if at + 1 < len(items) else None
            if kind_of(item) == "reasoning" and (follows is None or not is_of_model(follows)):
                yield invalid(
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                    "input",
                )

    def reasoning_given(self, incoming: Incoming) -> Iterator[Violation]:
        """What reasoning led to comes with it, as long as it is called by the id it was given."""
        given: set[str] = set()
        for item in self._items(incoming):
            named = str(item.get("id") or "")
            _, led, reasoning = named.partition(_LED_BY)
            if led and reasoning not in given:
                yield invalid(
                    f"Item '{named}' of type '{kind_of(item)}' was provided without its required 'reasoning' item: "
                    f"'{reasoning}'.",
                    "input",
                )
            given.add(named)

    def _items(self, incoming: Incoming) -> list[Json]:
        return resolved(incoming.body, self._memory)


def _words(kind: str) -> str:
    return kind.replace("_", " ")
