"""The tools and the system prompt of a research agent."""

from tests.generated.session import Tool

_TEXT = {"type": "string"}

TOOLS = (
    Tool(
        name="web_search",
        description="Search the web. Returns titles, addresses and snippets, best first.",
        properties={"query": _TEXT, "max_results": {"type": "integer"}},
        required=("query",),
    ),
    Tool(
        name="web_fetch",
        description="Fetch one web page and return its text as Markdown.",
        properties={"url": _TEXT},
        required=("url",),
    ),
    Tool(
        name="write_file",
        description="Write a file in the working folder, replacing what is there. Use it for notes and for the report.",
        properties={"path": _TEXT, "content": _TEXT},
        required=("path", "content"),
    ),
    Tool(
        name="read_file",
        description="Read a file in the working folder.",
        properties={"path": _TEXT},
        required=("path",),
    ),
    Tool(
        name="python",
        description="Run a short Python program and return what it prints. For arithmetic and tables, not for the web.",
        properties={"code": _TEXT},
        required=("code",),
    ),
    Tool(
        name="todo",
        description="Replace the list of open questions.",
        properties={"items": {"type": "array", "items": _TEXT}},
        required=("items",),
    ),
)

SYSTEM = """You are a research assistant. The subject of this project is {topic}. Today is 11 May 2026.

Plan before you search. Prefer primary sources, open what you cite, and write down every figure with its address in \
notes.md before you use it. When sources disagree, say so and say which one you trust and why. Never invent a figure. \
Rules that the user sets hold for the whole project. Answers are short; long results go into a file."""
