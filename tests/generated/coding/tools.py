"""The tools and the system prompt of a coding agent."""

from tests.generated.session import Tool

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": 1}

TOOLS = (
    Tool(
        name="read_file",
        description="Read a text file with line numbers. Give offset and limit for a part of a long file. Lines that are "
        "longer than 2,000 characters are cut. Reading a file that does not exist is an error.",
        properties={"path": _TEXT, "offset": _NUMBER, "limit": _NUMBER},
        required=("path",),
    ),
    Tool(
        name="write_file",
        description="Create a file or replace all of its content. Prefer `patch` for changes to an existing file.",
        properties={"path": _TEXT, "content": _TEXT},
        required=("path", "content"),
    ),
    Tool(
        name="patch",
        description="Replace a text that stands in a file exactly once by another. Fails if it is not found, or found "
        "more than once: then give more of the surrounding lines.",
        properties={"path": _TEXT, "old_string": _TEXT, "new_string": _TEXT},
        required=("path", "old_string", "new_string"),
    ),
    Tool(
        name="search_files",
        description="Search file contents for a fixed string or a regular expression; results are path:line:text.",
        properties={"pattern": _TEXT, "path": _TEXT, "glob": _TEXT},
        required=("pattern",),
    ),
    Tool(
        name="terminal",
        description="Run a command in a shell in the repository's root and return what it prints. A command that takes "
        "longer than `timeout` seconds is stopped. Do not use it to read or edit files.",
        properties={"command": _TEXT, "timeout": _NUMBER},
        required=("command",),
    ),
    Tool(
        name="todo",
        description="Replace the list of tasks. Each has a text and a state: pending, in_progress or done.",
        properties={"items": {"type": "array", "items": {"type": "object"}}},
        required=("items",),
    ),
)

SYSTEM = """You are a coding agent working in the repository {name} at {root}, on branch {branch}. \
The code base is mostly {language}; the domain is {domain}.

Work in small steps. Read before you change, search before you assume, run the tests that cover what you touched, and \
say what you did in a few lines when you are finished. Call several tools at once when they do not depend on each other. \
Keep a list of tasks when there are more than three. Do what the user asked and nothing else; if the user sets a rule, \
it holds for the rest of the session. Never commit unless asked. Quote paths, identifiers and error messages exactly."""
