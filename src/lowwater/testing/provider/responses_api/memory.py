"""What the API keeps of responses with `store`: whole conversations, and items by their id."""

from lowwater.testing.provider.rule import Json


class Memory:
    """The responses of one provider."""

    def __init__(self) -> None:
        self._conversations: dict[str, list[Json]] = {}
        self._items: dict[str, Json] = {}

    def keep(self, response_id: str, items: list[Json]) -> None:
        """Remember a conversation that ends with a response."""
        self._conversations[response_id] = items
        self._items |= {str(item["id"]): item for item in items if item.get("id")}

    def conversation(self, response_id: object) -> list[Json] | None:
        """Return the conversation that ends with a response, if it is remembered."""
        return self._conversations.get(str(response_id)) if response_id is not None else None

    def item(self, item_id: object) -> Json | None:
        """Return an item by its id, if it is remembered."""
        return self._items.get(str(item_id))
