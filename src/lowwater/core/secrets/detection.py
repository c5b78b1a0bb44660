"""Finding secrets in text: keys, tokens, passwords and private-key blocks."""

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from msgspec import Struct


class FoundSecret(NamedTuple):
    """A secret from `start` to `end`. A named tuple, because there may be very many."""

    start: int
    end: int
    kind: str


# Names of secrets


class Stem(Struct, frozen=True, kw_only=True):
    """A lower-case word in the name of a secret, and a pattern for what may follow it in that name."""

    kind: str
    word: str
    tail: str


_KEY = r"(?:[_-]?(?:access[_-]?)?key)?"
_NUMBERED = r"(?:[_-]?[0-9]{1,2})?"
STEMS = (
    Stem(kind="password", word="passw", tail=rf"(?:or)?d{_NUMBERED}"),
    Stem(kind="password", word="passphrase", tail=""),
    Stem(kind="password", word="pwd", tail=_NUMBERED),
    Stem(kind="password", word="pass", tail=_NUMBERED),
    Stem(kind="secret", word="secret", tail=rf"{_KEY}(?:[_-]?(?:token|value))?{_NUMBERED}"),
    Stem(kind="token", word="token", tail=rf"(?:[_-]?(?:secret|value))?{_NUMBERED}"),
    Stem(kind="key", word="key", tail=_NUMBERED),
)
_KEY_HEAD = re.compile(
    r"(?:api|access|private|auth|account|signing|encrypt(?:ion)?|secret|master|shared|storage|service|deploy|license"
    r"|app|consumer|admin|subscription|host|function)[ _-]?\Z"
)
_PASS_HEAD = re.compile(
    r"(?:\A|[^a-z])(?:db|database|ssh|become|sudo|root|admin|user|login|mysql|mariadb|pg|postgres|postgresql|mongo|mongodb|redis"
    r"|rabbitmq|amqp|kafka|oracle|smtp|imap|mail|email|ftp|sftp|ldap|bind|vault|proxy|http|basic|auth|keystore|truststore|registry"
    r"|docker|jenkins|git|wifi|vpn|vnc|rdp)[_-]\Z"
)
"""What comes before `pass` in the name of a password; `pass` alone is usually a run over something."""
_OTHER_TOKEN_HEAD = re.compile(
    r"(?:page|next|continuation|cursor|sync|eos|bos|pad|unk|cls|sep|mask|stop|special|start|end|per|cache|prompt|public[_-]?key)[ _-]?\Z"
)
_HEAD = re.compile(r"[\w.-]{0,40}\Z")
_NAME_ENDS = tuple((stem, re.compile(f"{stem.word}{stem.tail}$")) for stem in STEMS)


def kind_announced(name: str) -> str:
    """Return the kind of secret that a field of this name holds; empty if it holds none."""
    lowered = name.lower()
    for stem, ends in _NAME_ENDS:
        found = ends.search(lowered)
        if found and _announces(stem, lowered[: found.start()]):
            return stem.kind
    return ""


def _head_before(text: str, at: int) -> str:
    """Return the beginning of the name whose stem is at `at`."""
    found = _HEAD.search(text[max(0, at - 40) : at])
    return found[0] if found else ""


def _announces(stem: Stem, head: str) -> bool:
    """Return whether a stem after this lower-case head names a secret; there are keys and tokens that are not secret."""
    if stem.word == "key":
        return _KEY_HEAD.search(head) is not None
    if stem.word == "pass":
        return _PASS_HEAD.search(head) is not None
    return stem.word != "token" or _OTHER_TOKEN_HEAD.search(head) is None


# What a value looks like


_TEMPLATE = re.compile(r"[$%]\w*\{|\{\w*\}|\{\{|[$%]\(|<[\w .:/|-]*>|\[[^\]]*\]|\([^)]*\)|%[sd]\b|\.\.\.|…")
_PLACEHOLDER_STARTS = (
    "$",
    "%",
    "/",
    "./",
    "../",
    "~/",
    "{",
    "<",
    "[",
    "(",
    "*",
    "&",
    "@/",
    "file:",
    "http:",
    "https:",
)
_PLACEHOLDER_WORDS = re.compile(
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
_LONG_LOWER = re.compile(r"[a-z]{12,40}")
_PHRASE = re.compile(r"[a-z]{3,12}(?: [a-z]{3,12}){3,9}")
_ABOUT_PASSWORDS = re.compile(
    r"pass|pwd|secret|user|login|input|field|form|text|token|auth|label|error|invalid|valid|enter|type|string|value|config|"
    r"setting|default|encrypt|hash|bcrypt|argon|plain|clear|empty|random|generat|prompt|vault|manager|store|name|admin|host|"
    r"database|reset|forgot|confirm|change|current|hidden|strong|weak|test|the|and|for|key|env|file|icon|button|credential|"
    r"base|reader|provider|required|optional|unknown|missing|true|false|null"
)
"""Words that programs dealing with passwords use in names and texts; a password made of words rarely has one."""
_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+")
_LONG_RUN = 20
_JUDGED_CHARS = 400
"""Characters of a value that are examined."""


def _is_dummy(value: str) -> bool:
    """Return whether a value only takes the place of a secret: a variable, a template, a path, asterisks, `your-key`."""
    judged = value[:_JUDGED_CHARS]
    if judged.startswith(_PLACEHOLDER_STARTS) or _TEMPLATE.search(judged) is not None:
        return True
    return _PLACEHOLDER_WORDS.search(judged.lower()) is not None


def _is_random(value: str) -> bool:
    """Return whether a value looks random rather than named: letters and digits alternate often."""
    judged = value[:_JUDGED_CHARS]
    if any(map(_is_random_run, _RUN.findall(judged))) or _UUID.fullmatch(judged) is not None:
        return True
    return _BASE64.fullmatch(judged) is not None and _is_mixed(judged) and _is_encoded(judged)


def _is_mixed(value: str) -> bool:
    """Return whether a value has capitals, small letters and digits."""
    return value.upper() != value != value.lower() and _DIGIT.search(value) is not None


def _is_password_like(value: str) -> bool:
    """Return whether a value looks like a password that somebody made up: more than words, names and dots."""
    judged = value[:_JUDGED_CHARS]
    if _NAME.fullmatch(judged):
        return _is_random(judged)
    return _DIGIT.search(judged) is not None or (
        _SYMBOL.search(judged) is not None and _LETTER.search(judged) is not None
    )


def _is_worded(value: str) -> bool:
    """Return whether a value looks like a password made of words: several in a row, or one too long for a name."""
    judged = value[:_JUDGED_CHARS]
    if _ABOUT_PASSWORDS.search(judged.lower()) is not None:
        return False
    return _DASHED.fullmatch(judged) is not None or _LONG_LOWER.fullmatch(judged) is not None


def _is_phrase(value: str) -> bool:
    """Return whether a value looks like a passphrase: four words or more that are not a sentence about passwords."""
    judged = value[:_JUDGED_CHARS]
    return _PHRASE.fullmatch(judged) is not None and _ABOUT_PASSWORDS.search(judged) is None


def _is_encoded(value: str) -> bool:
    """Return whether a value looks like base64: capitals and small letters alternate often."""
    judged = value[:_JUDGED_CHARS]
    mixed = judged.upper() != judged != judged.lower()
    return mixed and len(judged) <= 3 * len(_PIECE.findall(judged))


def _is_random_run(run: str) -> bool:
    """Return whether a run of letters and digits is random: names have four letters or more between capitals and digits."""
    pieces = len(_PIECE.findall(run))
    if _DIGIT.search(run) is None:
        return len(run) >= _LONG_RUN and run.upper() != run != run.lower() and len(run) <= 3 * pieces
    if len(run) >= _LONG_RUN:
        return len(run) < 4 * pieces
    return len(run) <= 3 * pieces and _LETTER.search(run) is not None


# Private-key blocks


_BLOCK_BEGINS = "-----BEGIN "
_GAP = r"""(?:\s|\\+[nrt]|["',+>|;]|(?<=[\s>])\d{1,6}[\t→:|])"""
"""What separates the lines of a key: in a file, a string, quoted code or a numbered listing."""
_BLOCK = re.compile(
    rf"""{_BLOCK_BEGINS.replace(" ", "[ ]")}(?:[A-Z0-9]{{2,12}}[ ]){{0,3}}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
    {_GAP}*+
    (?:[A-Za-z][A-Za-z-]{{2,20}}:[ ][^\n\\"]{{0,200}}+{_GAP}++){{0,6}}+
    (?:[A-Za-z0-9+/=]{{16,}}+{_GAP}*+)++
    (?:[A-Za-z0-9+/=]{{1,15}}+{_GAP}*+){{0,2}}+
    (?:-----END[ ][A-Z0-9 ]{{1,40}}+-----)?""",
    re.VERBOSE,
)


def blocks_in(text: str) -> Iterator[FoundSecret]:
    """Yield private-key blocks with at least one line of a key; code may contain the header alone."""
    if _BLOCK_BEGINS not in text:
        return
    for match in _BLOCK.finditer(text):
        yield FoundSecret(match.start(), match.start() + len(match[0].rstrip()), "private key")


# Keys with a known form


class SecretFamily(Struct, frozen=True, kw_only=True):
    """Keys that have a literal in common; `random` ones must also look random, because words may begin like them."""

    kind: str
    literal: str
    pattern: re.Pattern[str]
    random: bool = False


def _prefix_family(kind: str, begins: str, rest: str, *, random: bool = False) -> SecretFamily:
    """Return the family of keys that begin with a literal, not preceded by letters or digits except an escaped line end."""
    literal = re.escape(begins)
    alone = rf"(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal}))"
    return SecretFamily(kind=kind, literal=begins, pattern=re.compile(literal + alone + rest), random=random)


def _infix_family(kind: str, middle: str, before: str, rest: str) -> SecretFamily:
    """Return the family of keys with a literal in the middle."""
    pattern = re.compile(rf"(?<![\w.~-]){before}{re.escape(middle)}{rest}")
    return SecretFamily(kind=kind, literal=middle, pattern=pattern)


_ANY = r"[A-Za-z0-9_-]"
_HEX = r"[0-9a-f]"
_END = r"(?![A-Za-z0-9])"
FAMILIES = (
    _prefix_family("Anthropic key", "sk-ant-", rf"{_ANY}{{16,}}+"),
    _prefix_family("API key", "sk-", rf"(?!ant-){_ANY}{{20,}}+", random=True),
    _prefix_family("Stripe key", "sk_", r"(?:live|test)_[A-Za-z0-9]{16,}+"),
    _prefix_family("API key", "sk_", rf"{_HEX}{{48}}{_END}"),
    _prefix_family("Stripe key", "rk_", r"(?:live|test)_[A-Za-z0-9]{16,}+"),
    _prefix_family("Mapbox token", "sk.eyJ", rf"{_ANY}{{30,}}+\.{_ANY}{{16,}}+"),
    _prefix_family("webhook secret", "whsec_", r"[A-Za-z0-9+/=]{24,}+", random=True),
    _prefix_family("AWS key id", "AKIA", rf"[A-Z0-9]{{16}}{_END}"),
    _prefix_family("AWS key id", "ASIA", rf"[A-Z0-9]{{16}}{_END}"),
    _prefix_family("Alibaba key id", "LTAI", rf"[A-Za-z0-9]{{12,24}}+{_END}", random=True),
    _prefix_family("Artifactory token", "AKC", r"[A-Za-z0-9]{60,}+", random=True),
    _prefix_family("Atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{100,}+"),
    _prefix_family("Bitbucket token", "ATBB", rf"[A-Za-z0-9]{{32}}{_END}", random=True),
    _prefix_family("GitHub token", "gh", r"[pousr]_[A-Za-z0-9]{36,}+"),
    _prefix_family("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,}+"),
    _prefix_family("GitLab token", "glpat-", rf"{_ANY}{{20,}}+"),
    _prefix_family(
        "GitLab token", "gl", rf"(?:dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-{_ANY}{{20,}}+", random=True
    ),
    _prefix_family("Grafana token", "glsa_", rf"[A-Za-z0-9]{{32}}_{_HEX}{{8}}"),
    _prefix_family("Grafana token", "glc_", r"[A-Za-z0-9+/=]{32,}+", random=True),
    _prefix_family("Slack token", "xox", r"[abceoprs]-[A-Za-z0-9-]{10,}+", random=True),
    _prefix_family("Slack token", "xapp-", r"[A-Za-z0-9-]{20,}+", random=True),
    _prefix_family("Slack webhook", "hooks.slack.com/", r"(?:services|workflows)/[A-Za-z0-9_/-]{20,}+"),
    _prefix_family("Discord webhook", "discord.com/api/webhooks/", rf"[0-9]{{10,}}+/{_ANY}{{40,}}+"),
    _prefix_family("Google key", "AIza", rf"{_ANY}{{35,}}+"),
    _prefix_family("Google token", "ya29.", rf"{_ANY}{{20,}}+"),
    _prefix_family("Google secret", "GOCSPX-", rf"{_ANY}{{20,}}+"),
    _prefix_family("npm token", "npm_", r"[A-Za-z0-9]{36,}+"),
    _prefix_family("PyPI token", "pypi-", rf"{_ANY}{{50,}}+"),
    _prefix_family("RubyGems key", "rubygems_", rf"{_HEX}{{48}}{_END}"),
    _prefix_family("Hugging Face token", "hf_", r"[A-Za-z0-9]{30,}+"),
    _prefix_family("Groq key", "gsk_", r"[A-Za-z0-9]{40,}+"),
    _prefix_family("xAI key", "xai-", r"[A-Za-z0-9]{60,}+"),
    _prefix_family("NVIDIA key", "nvapi-", rf"{_ANY}{{40,}}+"),
    _prefix_family("Replicate token", "r8_", r"[A-Za-z0-9]{37,}+", random=True),
    _prefix_family("Perplexity key", "pplx-", r"[A-Za-z0-9]{40,}+", random=True),
    _prefix_family("Fireworks key", "fw_", rf"[A-Za-z0-9]{{22,30}}+{_END}", random=True),
    _prefix_family("Pinecone key", "pcsk_", r"[A-Za-z0-9_]{40,}+", random=True),
    _prefix_family("LangSmith key", "lsv2_", rf"[a-z]{{2}}_{_HEX}{{32}}_{_HEX}{{10}}"),
    _prefix_family("SendGrid key", "SG.", rf"{_ANY}{{16,64}}+\.{_ANY}{{16,}}+"),
    _prefix_family("Twilio key", "SK", rf"{_HEX}{{32}}{_END}"),
    _prefix_family("Twilio account", "AC", rf"{_HEX}{{32}}{_END}"),
    _prefix_family("Mailgun key", "key-", rf"{_HEX}{{32}}{_END}"),
    _prefix_family("MailerSend token", "mlsn.", rf"{_HEX}{{60,}}+"),
    _prefix_family("Square key", "sq0", rf"(?:csp|atp|idp)-{_ANY}{{22,}}+"),
    _prefix_family("Square token", "EAAA", rf"{_ANY}{{56,}}+", random=True),
    _prefix_family("Shopify token", "shp", rf"(?:at|ca|pa|ss)_{_HEX}{{32}}{_END}"),
    _prefix_family("EasyPost key", "EZ", r"[AT]K[A-Za-z0-9]{54}"),
    _prefix_family("Linear key", "lin_", r"(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    _prefix_family("Notion token", "ntn_", r"[A-Za-z0-9]{40,}+"),
    _prefix_family("Figma token", "figd_", rf"{_ANY}{{36,}}+"),
    _prefix_family("Postman key", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    _prefix_family("New Relic key", "NRAK-", r"[A-Z0-9]{27}"),
    _prefix_family("Sentry token", "sntry", r"[su]_[A-Za-z0-9+/=_-]{40,}+"),
    _prefix_family("Doppler token", "dp.", r"(?:pt|st|ct|scim|audit|sa)\.[A-Za-z0-9.]{40,}+"),
    _prefix_family("PlanetScale token", "pscale_", rf"(?:tkn|pw|oauth)_{_ANY}{{32,}}+"),
    _prefix_family("Supabase token", "sbp_", rf"{_HEX}{{40}}{_END}"),
    _prefix_family("Netlify token", "nfp_", r"[A-Za-z0-9]{36,}+"),
    _prefix_family("Heroku token", "HRKU-", rf"{_ANY}{{30,}}+"),
    _prefix_family("Airtable token", "pat", rf"[A-Za-z0-9]{{14}}\.{_HEX}{{64}}"),
    _prefix_family("Pulumi token", "pul-", rf"{_HEX}{{40}}{_END}"),
    _prefix_family("Tailscale key", "tskey-", r"[a-z]{2,12}-[A-Za-z0-9-]{20,}+"),
    _prefix_family("Dynatrace token", "dt0", r"[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _prefix_family("Contentful token", "CFPAT-", rf"{_ANY}{{40,}}+"),
    _prefix_family("CircleCI token", "CCIPAT_", rf"[A-Za-z0-9]{{16,}}+_{_HEX}{{40}}"),
    _prefix_family("Buildkite token", "bkua_", rf"{_HEX}{{40}}{_END}"),
    _prefix_family("1Password token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{200,}+"),
    _prefix_family("IBM key", "apikey-", rf"[A-Za-z0-9]{{32,}}+{_END}", random=True),
    _prefix_family("Databricks token", "dapi", rf"{_HEX}{{32}}{_END}"),
    _prefix_family("DigitalOcean token", "do", rf"[opr]_v1_{_HEX}{{64}}"),
    _prefix_family("Docker token", "dckr_", rf"[a-z]{{2,4}}_{_ANY}{{20,}}+"),
    _prefix_family("Vault token", "hvs.", rf"{_ANY}{{24,}}+"),
    _prefix_family("Vault token", "hvb.", rf"{_ANY}{{100,}}+"),
    _prefix_family("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}+"),
    _prefix_family("JWT", "eyJ", rf"(?<!{_ANY}eyJ){_ANY}{{8,}}+\.eyJ{_ANY}{{8,}}+\.{_ANY}*+"),
    _prefix_family("bot token", "AA", rf"(?<=[0-9]:AA){_ANY}{{33}}(?!{_ANY})"),
    _prefix_family("gateway capability", "lw-", rf"(?=[A-Za-z_-]{{0,31}}+[0-9]){_ANY}{{32}}(?!{_ANY})"),
    _prefix_family("password hash", "$apr1$", r"[./A-Za-z0-9]{1,8}+\$[./A-Za-z0-9]{22}"),
    _prefix_family("password hash", "$1$", r"[./A-Za-z0-9]{1,8}+\$[./A-Za-z0-9]{22}"),
    _prefix_family("password hash", "$2", r"[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}"),
    _prefix_family(
        "password hash", "$5$", r"(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}+\$[./A-Za-z0-9]{43}"
    ),
    _prefix_family(
        "password hash", "$6$", r"(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}+\$[./A-Za-z0-9]{86}"
    ),
    _prefix_family("password hash", "$y$", r"[./A-Za-z0-9]{1,16}+\$[./A-Za-z0-9]{1,64}+\$[./A-Za-z0-9]{43}"),
    _prefix_family("password hash", "$argon2", r"[a-z]{1,2}\$[A-Za-z0-9+/=,$]{40,}+"),
    _infix_family("Mailchimp key", "-us", rf"{_HEX}{{32}}", rf"[0-9]{{1,2}}{_END}"),
    _infix_family("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}", rf"{_ANY}{{60,}}+"),
    _infix_family("Azure secret", "8Q~", r"[A-Za-z0-9_~.-]{3}", r"[A-Za-z0-9_~.-]{31,34}+"),
)
_DISCORD = re.compile(rf"[MNO](?<![\w.-][MNO]){_ANY}{{23,27}}+\.{_ANY}{{6}}\.{_ANY}{{27,38}}+(?![\w-])")

_LONG_WORD = re.compile(r"[A-Za-z0-9_+/=~.,$:-]{15,}")
"""Every key lies inside one such word; most texts have few of them, which are searched faster than the whole text."""
_DISCORD_MIDDLE = re.compile(rf"\.{_ANY}{{6}}\.{_ANY}{{27}}")
"""What every such token has: a pattern that begins with a dot is searched for several times as fast."""


def secret_keys_in(text: str) -> Iterator[FoundSecret]:
    """Yield the keys in a text, by family."""
    long_words = "\n".join(_LONG_WORD.findall(text))
    for family in FAMILIES:
        if family.literal not in long_words:
            continue
        for match in family.pattern.finditer(text):
            if not family.random or _is_random(match[0][len(family.literal) :]):
                yield FoundSecret(match.start(), match.end(), family.kind)
    for match in _DISCORD.finditer(text) if _DISCORD_MIDDLE.search(text) else ():
        if _is_mixed(match[0]):
            yield FoundSecret(match.start(), match.end(), "bot token")


# Command lines, configuration files and cookies


_OPTION_GAP = r"""(?:[\s,"']|\\+["'n])"""
"""What separates two words: on a command line, in a list of arguments or in a string."""
_VALUE = r"""[^\s"'`\\,;|&<>]"""
_SECRET = rf"(?P<secret>{_VALUE}{{4,128}}+)"
_CLUSTER = r"-(?=[A-Za-z]{0,7}b)(?![A-Za-z]{0,7}n)[A-Za-z]{1,8}+"
"""Options of htpasswd with `-b`, which takes the password from the command line."""
_PRINTING = r"-(?=[A-Za-z]{0,7}b)(?=[A-Za-z]{0,7}n)[A-Za-z]{1,8}+"
"""The same with `-n`, which takes no file."""
_CURL_USER = re.compile(
    rf"""(?<=[\s"'])(?:-[A-Za-z]{{0,6}}u|--(?:proxy-)?user)(?:{_OPTION_GAP}|=){{0,4}}+(?P<user>[^\s"'`\\:@/=]{{1,64}}+):(?P<secret>[^\s"'`\\]{{3,128}}+)"""
)
_MYSQL_PASSWORD = re.compile(rf"""(?<=[\s"'])-p["']?(?P<secret>{_VALUE}{{4,128}}+)""")
_OPTIONS = (
    (
        "sshpass",
        re.compile(rf"sshpass{_OPTION_GAP}{{1,4}}+-p{_OPTION_GAP}{{0,4}}+(?P<secret>{_VALUE}{{3,128}}+)"),
    ),
    (
        "redis-cli",
        re.compile(
            rf"redis-cli(?:{_OPTION_GAP}{{1,4}}+(?!-a){_VALUE}{{1,64}}+){{0,8}}+{_OPTION_GAP}{{1,4}}+-a{_OPTION_GAP}{{1,4}}+(?P<secret>{_VALUE}{{4,128}}+)"
        ),
    ),
    (
        "machine",
        re.compile(
            rf"machine(?:\s|\\+[nt]){{1,8}}+{_VALUE}{{1,128}}+(?:\s|\\+[nt]){{1,8}}+login(?:\s|\\+[nt]){{1,8}}+{_VALUE}{{1,128}}+"
            rf"(?:\s|\\+[nt]){{1,8}}+password(?:\s|\\+[nt]){{1,8}}+(?P<secret>{_VALUE}{{3,128}}+)"
        ),
    ),
)
_WORDED_OPTIONS = (
    (
        "htpasswd",
        re.compile(
            rf"htpasswd{_OPTION_GAP}{{1,4}}+{_CLUSTER}(?:{_OPTION_GAP}{{1,4}}+{_VALUE}{{1,128}}+){{2}}{_OPTION_GAP}{{1,4}}+{_SECRET}"
        ),
    ),
    (
        "htpasswd",
        re.compile(
            rf"htpasswd{_OPTION_GAP}{{1,4}}+{_PRINTING}{_OPTION_GAP}{{1,4}}+{_VALUE}{{1,128}}+{_OPTION_GAP}{{1,4}}+{_SECRET}"
        ),
    ),
    (
        "zip",
        re.compile(
            rf"(?<![\w.-])(?:un)?zip(?:{_OPTION_GAP}{{1,4}}+(?!-P){_VALUE}{{1,64}}+){{0,8}}+{_OPTION_GAP}{{1,4}}+-P{_OPTION_GAP}{{0,4}}+{_SECRET}"
        ),
    ),
    (
        "openssl",
        re.compile(
            rf"openssl(?:{_OPTION_GAP}{{1,4}}+(?!-k{_OPTION_GAP}|-pass){_VALUE}{{1,64}}+){{1,16}}+{_OPTION_GAP}{{1,4}}+"
            rf"(?:-k{_OPTION_GAP}|-pass(?:in|out)?{_OPTION_GAP}{{1,4}}+pass:){_SECRET}"
        ),
    ),
)
"""Passwords on the command lines of programs whose manuals show plain words in that place."""
_KNOWN_FIELDS = (
    (
        "client-key-data",
        "private key",
        re.compile(
            r"""client-key-data(?:\\*["']){0,2}:[ ]{0,2}(?:\\*["'])?(?P<secret>[A-Za-z0-9+/]{16,}+={0,2})"""
        ),
    ),
    (
        "otpauth://",
        "secret",
        re.compile(
            r"""otpauth://(?:(?!secret=)[^\s"'`<>\\]){0,256}+secret=(?P<secret>[A-Za-z2-7]{8,128}+)"""
        ),
    ),
    ("-Signature=", "signature", re.compile(r"X-(?:Amz|Goog)-Signature=(?P<secret>[0-9a-f]{64,1024}+)")),
)
_PGPASS = re.compile(
    r"""(?<![\w.:*/-])(?:[A-Za-z0-9.-]{1,128}+|\*):(?:5432|5433|6432|6543|\*):(?:[\w.-]{1,64}+|\*):(?:[\w.-]{1,64}+|\*):(?P<secret>[^\s:"'`\\]{4,128}+)(?![:\w])"""
)
_COOKIE = re.compile(
    r"""(?:(?<![a-z_])(?:set-)?cookies?(?:\\*["'\]]){0,3}[ \t]{0,4}[:=][ \t]{0,4}|--cookie[ =]|(?<=[\s"'])-b[ ])(?:\\*["'])?"""
)
_PAIR = re.compile(r"""(?P<name>[\w.%-]{1,64}+)=(?P<secret>[^\s;"'`\\,<>]{1,2048}+)(?:;[ ]{0,2})?""")
_SESSION_NAME = re.compile(r"sess|sid\b|auth|token|csrf|xsrf|jwt|remember|login|secret|key", re.IGNORECASE)
_AUTH = re.compile(
    r"""_?auth(?:\\*["']){0,2}[ ]{0,2}[:=][ ]{0,2}(?:\\*["'])?(?P<secret>[A-Za-z0-9+/]{8,2048}+={0,2})"""
)
_GATEWAY_HEADER = re.compile(
    rf"""x-lowwater-key(?:\\*["'\]]){{0,3}}[ \t]{{0,4}}[:=,][ \t]{{0,4}}(?:\\*["'])?(?P<secret>{_VALUE}{{3,256}}+)"""
)
_GATEWAY_SETTING = re.compile(
    r"""lowwater_gateway_keys(?:\\*["'\]]){0,3}[ \t]{0,4}[:=][ \t]{0,4}(?:\\*["'])?(?P<secret>[^\s"'`\\;|&<>]{3,1024}+)"""
)
_PHP_DEFINE = re.compile(
    r"""define\(\s{0,4}["']\w{0,40}(?:PASSWORD|SECRET|SALT|TOKEN|API_KEY|AUTH_KEY)\w{0,20}["']\s{0,4},\s{0,4}["'](?P<secret>[^"'\n]{6,256}+)["']"""
)
_COMMAND_REACH = 400
"""How many characters before an option its command may begin."""
_NUMBERS = re.compile(r"[0-9:./-]+")


def commands_in(text: str, lowered: str) -> Iterator[FoundSecret]:
    """Yield passwords on command lines and in the files of well-known programs."""
    if "curl" in lowered:
        yield from _options_of(_CURL_USER, text, ("curl",))
    if "mysql" in lowered or "mariadb" in lowered:
        yield from _options_of(_MYSQL_PASSWORD, text, ("mysql", "mariadb"))
    for word, pattern in _OPTIONS:
        if word in text:
            yield from _matches(pattern, text, "password")
    for word, pattern in _WORDED_OPTIONS:
        if word in text:
            yield from filter(partial(_is_password_at, text), _matches(pattern, text, "password"))
    for word, kind, pattern in _KNOWN_FIELDS:
        if word in text:
            yield from _matches(pattern, text, kind)
    if ":5432:" in text or ":*:*:" in text or ":5433:" in text or ":6432:" in text or ":6543:" in text:
        yield from _matches(_PGPASS, text, "password")
    if "define(" in text:
        yield from _matches(_PHP_DEFINE, text, "password")
    if "lowwater" in lowered:
        yield from _gateway_keys(text, lowered)


def cookies_in(text: str, lowered: str) -> Iterator[FoundSecret]:
    """Yield the values of session cookies and the like."""
    if "cookie" not in lowered and "curl" not in lowered:
        return
    for opened in _COOKIE.finditer(lowered):
        if opened[0].lstrip("\"'").startswith("-b") and not _follows_command(text, opened.start(), ("curl",)):
            continue
        at = opened.end()
        while pair := _PAIR.match(text, at):
            at = pair.end()
            if _is_session_cookie(pair["name"], pair["secret"]):
                yield FoundSecret(pair.start("secret"), pair.end("secret"), "cookie")


def encoded_in(text: str, lowered: str) -> Iterator[FoundSecret]:
    """Yield the `auth` values of Docker and npm: a name and a password in base64."""
    if "auth" not in lowered:
        return
    for match in _AUTH.finditer(lowered):
        start, end = match.span("secret")
        if _is_encoded_pair(text[start:end]):
            yield FoundSecret(start, end, "credentials")


def _is_encoded_pair(value: str) -> bool:
    """Return whether a value is a name and a password in base64, as in `Basic` authentication."""
    try:
        decoded = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    name, colon, password = decoded.partition(":")
    return bool(name and colon and password) and decoded.isprintable()


def _options_of(pattern: re.Pattern[str], text: str, commands: tuple[str, ...]) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        if _follows_command(text, match.start(), commands) and _is_literal(match["secret"]):
            yield FoundSecret(match.start("secret"), match.end("secret"), "password")


def _follows_command(text: str, at: int, commands: tuple[str, ...]) -> bool:
    """Return whether one of these commands comes before an option, on its line or on lines that it continues."""
    before = text[max(0, at - _COMMAND_REACH) : at]
    starts = max(before.rfind(command) for command in commands)
    return starts >= 0 and not re.search(r"(?<!\\)\n|[|;&]", before[starts:])


def _matches(pattern: re.Pattern[str], text: str, kind: str) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        if _is_literal(match["secret"]):
            yield FoundSecret(match.start("secret"), match.end("secret"), kind)


def _is_password_at(text: str, found: FoundSecret) -> bool:
    value = text[found.start : found.end]
    return _is_password_like(value) or _is_worded(value)


def _gateway_keys(text: str, lowered: str) -> Iterator[FoundSecret]:
    for pattern in (_GATEWAY_HEADER, _GATEWAY_SETTING):
        for match in pattern.finditer(lowered):
            start, end = match.span("secret")
            if not _is_dummy(text[start:end]):
                yield FoundSecret(start, end, "gateway key")


def _is_literal(value: str) -> bool:
    """Return whether a value is written out, and is not a number, address or variable."""
    return not _is_dummy(value) and _NUMBERS.fullmatch(value) is None


def _is_session_cookie(name: str, value: str) -> bool:
    if _is_dummy(value) or len(value) < 8:
        return False
    if _SESSION_NAME.search(name):
        return len(value) >= 16 or _is_random(value) or _is_mixed(value)
    return len(value) >= 16 and _is_random(value)


# Headers and URLs


_BEARER = re.compile(r"bearer[ ]{1,3}")
_AUTHORIZATION = re.compile(
    r"""authorization(?<![a-z]authorization)(?:\\*["'\]]){0,3}[ \t]{0,4}[:=,][ \t]{0,4}(?:\\*["'`])?(?P<scheme>basic|token|apikey|key)?[ ]{0,3}"""
)
_KEY_HEADER = re.compile(
    r"""-(?:key|token)(?:(?<=api-key)|(?<=x-auth-token)|(?<=access-token)|(?<=private-token)|(?<=vault-token)|(?<=gitlab-token))"""
    r"""(?:\\*["'\]]){0,3}[ \t]{0,4}:[ \t]{0,4}(?:\\*["'`])?"""
)
_CREDENTIAL = re.compile(r"[A-Za-z0-9._~+/=-]{8,}+")
_SIGNATURE = re.compile(r"sig=(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%+/=_-]{30,}+)")
_USERINFO = re.compile(
    r"""://(?P<user>[^\s/@:"'<>`\\]{0,128}+)(?::(?P<secret>[^\s/@"'<>`\\]{1,256}+))?@(?!sha256)(?=[\w\[$%{])"""
)
_DOC_PLACEHOLDER = re.compile(r"[A-Z_]+")
"""How documents write a value that the reader is to fill in."""
_SHORTEST = 16


def headers_in(text: str, lowered: str) -> Iterator[FoundSecret]:
    """Yield the credentials in `Authorization` headers and after `Bearer`."""
    for match in _BEARER.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and not _is_dummy(value[0]) and _is_credential(value[0]):
            yield FoundSecret(value.start(), value.end(), "bearer token")
    for match in _AUTHORIZATION.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and not _is_dummy(value[0]) and _is_authorization(match["scheme"] or "", value[0]):
            yield FoundSecret(value.start(), value.end(), "credentials")


def key_headers_in(text: str, lowered: str) -> Iterator[FoundSecret]:
    """Yield the values of headers that hold nothing but keys."""
    for match in _KEY_HEADER.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and len(value[0]) >= _SHORTEST and not _is_dummy(value[0]) and _is_password_like(value[0]):
            yield FoundSecret(value.start(), value.end(), "key")


def addresses_in(text: str) -> Iterator[FoundSecret]:
    """Yield the passwords, tokens and signatures in URLs."""
    if "://" not in text:
        return
    for match in _USERINFO.finditer(text):
        name = "secret" if match["secret"] else "user"
        value = match[name]
        if (
            not _is_dummy(value)
            and not _DOC_PLACEHOLDER.fullmatch(value)
            and (name == "secret" or (len(value) >= _SHORTEST and _is_random(value)))
        ):
            yield FoundSecret(match.start(name), match.end(name), "password" if name == "secret" else "token")
    for match in _SIGNATURE.finditer(text):
        if _is_random(match["secret"]):
            yield FoundSecret(match.start("secret"), match.end("secret"), "signature")


def _is_credential(value: str) -> bool:
    return len(value) >= _SHORTEST and (_is_mixed(value) or _is_random(value))


def _is_authorization(scheme: str, value: str) -> bool:
    if scheme == "basic":
        return _is_encoded(value) or _is_encoded_pair(value)
    return _is_credential(value)


# Assignments


_LONGEST = 1_024
"""The most characters of a quoted value; a longer one is a document."""
_SHORTEST_VALUE = 6
_LETTERS_ONLY = 8
"""The fewest characters of a random password without digits."""
_SEPARATOR = (
    r"""(?:\\*["'`\]]){0,3}[ \t]{0,8}"""
    r"""(?::[ ]{0,2}(?:str|string)(?:[ ]?\|[ ]?none)?[ ]?=(?!=)|:=|=>|={1,3}|:(?![:/])|>|(?<![ \t])(?=[ ]))[ \t]{0,4}"""
)
_ASSIGNMENTS = tuple((stem, re.compile(stem.word + stem.tail + _SEPARATOR)) for stem in STEMS)
_QUOTE = re.compile(r"""[bBrRuUfF]?(\\*["'`])""")
_BARE = re.compile(r"""[^\s"'`,;&<>(){}\[\]|\\]*[^\s"'`,;&<>(){}\[\]|\\.:!?…]""")
_LINE_START = re.compile(r"(?:\A|\n|\\n)[ \t]*(?:- |export |set |ENV |ARG )?[ \t]*\Z")
_OPENING_BRACKETS = frozenset("([{")
"""What follows a name that is called or indexed, rather than a value."""
_PLAIN_WORD = re.compile(r"[a-z]{8,}")


class _Assignment(NamedTuple):
    """An assignment in a text: the name begins at `starts`, the value at `at`."""

    text: str
    kind: str
    head: str
    """The beginning of the name, before its stem."""
    starts: int
    separator: str
    """The stem of the name and the separator after it, in lower case."""
    at: int

    @property
    def is_typed(self) -> bool:
        """Whether the name is that of a type, as in `AWS::IAM::AccessKey`, which has no value."""
        return self.text[max(0, self.starts - 2) : self.starts] == "::"

    @property
    def is_flag(self) -> bool:
        """Whether the name is an option of a command."""
        return self.head.startswith("--")

    @property
    def is_apart(self) -> bool:
        """Whether only a space separates name and value."""
        return self.separator.rstrip()[-1:].isalnum()

    @property
    def is_tight(self) -> bool:
        """Whether `=` alone separates them."""
        return self.separator.endswith("=") and not self.separator.endswith(("==", " ="))

    @property
    def is_tag(self) -> bool:
        """Whether the name is an XML tag."""
        return self.separator.endswith(">") and not self.separator.endswith("=>")

    @property
    def name(self) -> str:
        """The whole name, as it is written."""
        return self.text[self.starts : self.at].rstrip(" =")


class _Value(NamedTuple):
    """The span of an assigned value."""

    start: int
    end: int
    quoted: bool


def assignments_in(text: str, lowered: str) -> Iterator[FoundSecret]:
    """Yield values assigned to the name of a secret, if they look like one."""
    for stem, pattern in _ASSIGNMENTS:
        read = 0
        for match in pattern.finditer(lowered):
            # A name inside an unquoted value is part of it; searching from each one would take quadratic time.
            if match.start() < read:
                continue
            head = _head_before(text, match.start())
            if not _announces(stem, head.lower()):
                continue
            assignment = _Assignment(text, stem.kind, head, match.start() - len(head), match[0], match.end())
            value = (
                None
                if assignment.is_typed or (assignment.is_apart and not assignment.is_flag)
                else _value_at(assignment)
            )
            if value is None:
                continue
            read = read if value.quoted else value.end
            if _is_secret(assignment, value):
                yield FoundSecret(value.start, value.end, stem.kind)


def is_secret_value(kind: str, value: str) -> bool:
    """Return whether a quoted value assigned to the name of such a secret looks like one."""
    if len(value) < _SHORTEST_VALUE or _is_dummy(value):
        return False
    if any(map(str.isspace, value)):
        return kind == "password" and _is_phrase(value)
    return _is_password(value) if kind == "password" else _is_random(value)


def _is_password(value: str) -> bool:
    return (
        _is_password_like(value) or _is_worded(value) or (len(value) >= _LETTERS_ONLY and _is_encoded(value))
    )


def _value_at(assignment: _Assignment) -> _Value | None:
    """Return the span of the value; one whose quotation marks do not close ends like an unquoted one."""
    at = assignment.at
    opened = _QUOTE.match(assignment.text, at)
    if opened is not None:
        at = opened.end()
        end = assignment.text.find(opened[1], at, at + _LONGEST)
        if end >= 0:
            return _Value(at, end, quoted=True)
    bare = _BARE.match(assignment.text, at)
    return None if bare is None else _Value(at, bare.end(), quoted=False)


def _is_secret(assignment: _Assignment, value: _Value) -> bool:
    text = assignment.text[value.start : value.end]
    if value.quoted:
        return is_secret_value(assignment.kind, text)
    following = assignment.text[value.end : value.end + 2]
    if following[:1] in _OPENING_BRACKETS or (assignment.is_tag and following != "</"):
        return False
    if len(text) < _SHORTEST_VALUE or _is_dummy(text):
        return False
    return _is_random(text) or (value.start == assignment.at and _is_secret_by_context(assignment, text))


def _is_secret_by_context(assignment: _Assignment, value: str) -> bool:
    """Return whether the context of a value that does not look random makes it a secret."""
    if assignment.is_tight and assignment.name.isupper():
        return _is_environment_secret(assignment.kind, value)
    if assignment.kind != "password" or not _is_password(value):
        return False
    if (
        assignment.is_flag
        or assignment.is_tag
        or (assignment.is_tight and assignment.head.startswith("ansible_"))
    ):
        return True
    if assignment.is_tight and assignment.text[max(0, assignment.starts - 1) : assignment.starts] in {
        "?",
        "&",
        ";",
    }:
        return True
    ends = assignment.at + len(value)
    fills_line = assignment.text[ends : ends + 1] in {"", "\n", "\r", "\\"}
    return (
        fills_line
        and _LINE_START.search(assignment.text[max(0, assignment.starts - 40) : assignment.starts])
        is not None
    )


def _is_environment_secret(kind: str, value: str) -> bool:
    """Return whether an environment variable is a secret; with a name in capitals it cannot be a keyword argument."""
    if kind == "password":
        return _is_password(value) or _PLAIN_WORD.fullmatch(value) is not None
    if kind == "secret" and _is_worded(value):
        return True
    return len(value) >= _SHORTEST_VALUE + 2 and _is_password_like(value) and not value.isdigit()
