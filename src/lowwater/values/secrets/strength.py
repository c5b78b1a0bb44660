"""Does a value look like a secret? Words, names, placeholders, paths and templates do not."""

import re

_TEMPLATE = re.compile(r"[$%]\w*\{|\{\w*\}|\{\{|[$%]\(|<[\w .:/|-]*>|\[[^\]]*\]|\([^)]*\)|%[sd]\b|\.\.\.|…")
_BEGINS = ("$", "%", "/", "./", "../", "~/", "{", "<", "[", "(", "*", "&", "@/", "file:", "http:", "https:")
_NO_SECRET = re.compile(
    r"""(?:^|[^a-z])(?:your|sample|dummy|fake|mock|placeholder|redacted|masked|hidden|change[_-]?me
        |insert|replace|todo|none|null|undefined|here|optional|required)(?:$|[^a-z])
    | ^(.)\1*$ | x{4} | \*{3} | \#{3} | •{2} | example""",
    re.VERBOSE,
)
_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{32,}={0,2}")
_LETTER = re.compile(r"[A-Za-z]")
_DIGIT = re.compile(r"[0-9]")
_SYMBOL = re.compile(r"[!@#^&*+=?~$%]")
_DASHED = re.compile(r"[a-z]{3,}(?:-[a-z]{3,}){1,7}")
_JOINED = re.compile(r"[a-z]{12,40}")
_PHRASE = re.compile(r"[a-z]{3,12}(?: [a-z]{3,12}){3,9}")
_ABOUT_PASSWORDS = re.compile(
    r"pass|pwd|secret|user|login|input|field|form|text|token|auth|label|error|invalid|valid|enter|type|string|value|config|"
    r"setting|default|encrypt|hash|bcrypt|argon|plain|clear|empty|random|generat|prompt|vault|manager|store|name|admin|host|"
    r"database|reset|forgot|confirm|change|current|hidden|strong|weak|test|the|and|for|key|env|file|icon|button|credential|"
    r"base|reader|provider|required|optional|unknown|missing|true|false|null"
)
"""Words in the names and texts of programs that deal with passwords; a password of words hardly has one of them."""
_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+")
_LONG = 20
_READ = 400
"""Characters of a value by which it is judged."""


def is_blank(value: str) -> bool:
    """Tell whether a value only stands where a secret would: a variable, a template, a path, asterisks, `your-key`."""
    judged = value[:_READ]
    if judged.startswith(_BEGINS) or _TEMPLATE.search(judged) is not None:
        return True
    return _NO_SECRET.search(judged.lower()) is not None


def is_random(value: str) -> bool:
    """Tell whether a value looks drawn rather than named: letters and digits that change places often."""
    judged = value[:_READ]
    if any(map(_is_drawn, _RUN.findall(judged))) or _UUID.fullmatch(judged) is not None:
        return True
    return _BASE64.fullmatch(judged) is not None and is_mixed(judged) and is_encoded(judged)


def is_mixed(value: str) -> bool:
    """Tell whether a value has capitals, small letters and digits."""
    return value.upper() != value != value.lower() and _DIGIT.search(value) is not None


def is_chosen(value: str) -> bool:
    """Tell whether a value looks like a password somebody thought of: more than words, names and dots."""
    judged = value[:_READ]
    if _NAME.fullmatch(judged):
        return is_random(judged)
    return _DIGIT.search(judged) is not None or (
        _SYMBOL.search(judged) is not None and _LETTER.search(judged) is not None
    )


def is_worded(value: str) -> bool:
    """Tell whether a value looks like a password made of words: some in a row, or one that is too long to be a name."""
    judged = value[:_READ]
    if _ABOUT_PASSWORDS.search(judged.lower()) is not None:
        return False
    return _DASHED.fullmatch(judged) is not None or _JOINED.fullmatch(judged) is not None


def is_phrase(value: str) -> bool:
    """Tell whether a value looks like a passphrase: four words or more, and no sentence about one."""
    judged = value[:_READ]
    return _PHRASE.fullmatch(judged) is not None and _ABOUT_PASSWORDS.search(judged) is None


def is_encoded(value: str) -> bool:
    """Tell whether a value looks like base64: capitals and small letters that change places often."""
    judged = value[:_READ]
    mixed = judged.upper() != judged != judged.lower()
    return mixed and len(judged) <= 3 * len(_PIECE.findall(judged))


def _is_drawn(run: str) -> bool:
    """A name has pieces of four letters and more between its capitals and numbers; a drawn value has shorter ones."""
    pieces = len(_PIECE.findall(run))
    if _DIGIT.search(run) is None:
        return len(run) >= _LONG and run.upper() != run != run.lower() and len(run) <= 3 * pieces
    if len(run) >= _LONG:
        return len(run) < 4 * pieces
    return len(run) <= 3 * pieces and _LETTER.search(run) is not None
