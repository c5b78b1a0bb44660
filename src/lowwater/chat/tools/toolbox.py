"""The tools of one conversation: declared together, run one at a time, some only if the user agrees."""

from collections.abc import Callable, Iterable
from typing import Any

from lowwater.chat.tools.tool import Outcome, Tool, read_arguments
from lowwater.core.messages import ToolCall
from lowwater.errors import BadInput

DECLINED = "The user declined this. Do not try it again in another way; ask what to do instead."


class Toolbox:
    """Runs tool calls; `allow` asks the user a question and tells whether the answer was yes."""

    def __init__(self, tools: Iterable[Tool], *, allow: Callable[[str], bool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._allow = allow

    def declared(self) -> list[dict[str, Any]]:
        """Return all tools as a Messages request declares them; always the same bytes."""
        return [tool.declared() for tool in self._tools.values()]

    def run(self, call: ToolCall) -> Outcome:
        """Return what became of a call; whatever is wrong with it becomes a sentence for the model."""
        tool = self._tools.get(call.name)
        if tool is None:
            return Outcome(text=f"There is no tool {call.name!r}: use {self._names()}.", is_error=True)
        try:
            arguments = read_arguments(call.arguments)
            question = tool.question(arguments)
            if question and not self._allow(question):
                return Outcome(text=DECLINED, is_error=True)
            return Outcome(text=tool.run(arguments) or "(no output)")
        except BadInput as error:
            return Outcome(text=f"{call.name}: {error}.", is_error=True)
        except OSError as error:
            return Outcome(text=f"{call.name}: {error.strerror or type(error).__name__}.", is_error=True)

    def _names(self) -> str:
        return ", ".join(self._tools)
