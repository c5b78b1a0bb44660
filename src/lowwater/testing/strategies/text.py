"""Strings as they turn up in conversations: any character a provider accepts, and those that break programs."""

from hypothesis import strategies as st

_NOTABLE = (
    "ok",
    "日本語のテキストと中文文本、그리고 한국어",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
    "\u202eright to left\u202c שלום",
    "tab\tline\nreturn\r\x7f\x01",
    'quote " backslash \\ slash / </script>',
    "\u2028\u2029\ufeff\u0000\uffff",
    "{not: json} [text] $1 {{}}",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff",
    "lw:412 [elided]",
)
_CHARACTERS = st.characters(exclude_categories=["Cs"])
_TEXTS = st.sampled_from(_NOTABLE) | st.text(_CHARACTERS, max_size=24)


def texts() -> st.SearchStrategy[str]:
    """Return a strategy for strings without lone surrogates, the empty one included."""
    return _TEXTS


def spoken() -> st.SearchStrategy[str]:
    """Return a strategy for strings that a provider takes as text: neither empty nor blank, no blank at the end."""
    return _TEXTS.map(lambda text: f"say {text}".rstrip() if not text.strip() else text.rstrip())


def names() -> st.SearchStrategy[str]:
    """Return a strategy for names of tools and people."""
    return st.sampled_from(("read_file", "terminal", "Bash", "mcp__docs__search", "a", "get-weather_2"))


def base64s() -> st.SearchStrategy[str]:
    """Return a strategy for short base64 data."""
    return st.sampled_from(("iVBORw0KGgo=", "R0lGODlhAQABAAAAACw=", "JVBERi0xLjcK"))
