"""Finding secrets in text: keys, tokens, passwords and private-key blocks."""

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from msgspec import Struct


class Found(NamedTuple):
    """A secret from `start` to `end`; ordered by where it begins. A named tuple, for there may be very many."""

    start: int
    end: int
    kind: str


class Stem(Struct, frozen=True, kw_only=True):
    """A lower-case word in such a name, and what may follow it there."""

    kind: str
    word: str
    tail: str


_KEY = r"(?:[_-]?(?:access[_-]?)?key)?"
_COUNTED = r"(?:[_-]?[0-9]{1,2})?"
STEMS = (
    Stem(kind="password", word="passw", tail=rf"(?:or)?d{_COUNTED}"),
    Stem(kind="password", word="passphrase", tail=""),
    Stem(kind="password", word="pwd", tail=_COUNTED),
    Stem(kind="password", word="pass", tail=_COUNTED),
    Stem(kind="secret", word="secret", tail=rf"{_KEY}(?:[_-]?(?:token|value))?{_COUNTED}"),
    Stem(kind="token", word="token", tail=rf"(?:[_-]?(?:secret|value))?{_COUNTED}"),
    Stem(kind="key", word="key", tail=_COUNTED),
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
"""Before `pass`, which by itself is a run over something."""
_NO_TOKEN_HEAD = re.compile(
    r"(?:page|next|continuation|cursor|sync|eos|bos|pad|unk|cls|sep|mask|stop|special|start|end|per|cache|prompt|public[_-]?key)[ _-]?\Z"
)
_HEAD = re.compile(r"[\w.-]{0,40}\Z")
_ENDS = tuple((stem, re.compile(f"{stem.word}{stem.tail}$")) for stem in STEMS)


def head_before(text: str, at: int) -> str:
    """Return how the name begins in which a stem stands at `at`."""
    found = _HEAD.search(text[max(0, at - 40) : at])
    return found[0] if found else ""


def announces(stem: Stem, head: str) -> bool:
    """Tell whether a stem after this lower-case head announces a secret; there are keys and tokens of other kinds."""
    if stem.word == "key":
        return _KEY_HEAD.search(head) is not None
    if stem.word == "pass":
        return _PASS_HEAD.search(head) is not None
    return stem.word != "token" or _NO_TOKEN_HEAD.search(head) is None


def kind_announced(name: str) -> str:
    """Return the kind of secret that stands under this name, or nothing."""
    lowered = name.lower()
    for stem, ends in _ENDS:
        found = ends.search(lowered)
        if found and announces(stem, lowered[: found.start()]):
            return stem.kind
    return ""


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


_BLOCK_BEGINS = "-----BEGIN "
_GAP = r"""(?:\s|\\+[nrt]|["',+>|;]|(?<=[\s>])\d{1,6}[\t→:|])"""
"""What stands between the lines of a key: in a file, in a string, in quoted code, in a listing."""
_BLOCK = re.compile(
    rf"""{_BLOCK_BEGINS.replace(" ", "[ ]")}(?:[A-Z0-9]{{2,12}}[ ]){{0,3}}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
    {_GAP}*+
    (?:[A-Za-z][A-Za-z-]{{2,20}}:[ ][^\n\\"]{{0,200}}+{_GAP}++){{0,6}}+
    (?:[A-Za-z0-9+/=]{{16,}}+{_GAP}*+)++
    (?:[A-Za-z0-9+/=]{{1,15}}+{_GAP}*+){{0,2}}+
    (?:-----END[ ][A-Z0-9 ]{{1,40}}+-----)?""",
    re.VERBOSE,
)


def blocks_in(text: str) -> Iterator[Found]:
    """Yield the blocks with at least one line of a key; a header alone, as code has it, is none."""
    if _BLOCK_BEGINS not in text:
        return
    for match in _BLOCK.finditer(text):
        yield Found(match.start(), match.start() + len(match[0].rstrip()), "private key")


class Family(Struct, frozen=True, kw_only=True):
    """Keys that have a literal in common; `drawn` ones must also look random, for words may begin so too."""

    kind: str
    literal: str
    pattern: re.Pattern[str]
    drawn: bool = False


def _family(kind: str, begins: str, rest: str, *, drawn: bool = False) -> Family:
    """Return the family of keys that stand by themselves: nothing wordy before them, but for an escaped line end."""
    literal = re.escape(begins)
    alone = rf"(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal}))"
    return Family(kind=kind, literal=begins, pattern=re.compile(literal + alone + rest), drawn=drawn)


def _around(kind: str, middle: str, before: str, rest: str) -> Family:
    """Return the family of keys that are known by what stands in their middle."""
    pattern = re.compile(rf"(?<![\w.~-]){before}{re.escape(middle)}{rest}")
    return Family(kind=kind, literal=middle, pattern=pattern)


_ANY = r"[A-Za-z0-9_-]"
_HEX = r"[0-9a-f]"
_END = r"(?![A-Za-z0-9])"
FAMILIES = (
    _family("Anthropic key", "sk-ant-", rf"{_ANY}{{16,}}+"),
    _family("API key", "sk-", rf"(?!ant-){_ANY}{{20,}}+", drawn=True),
    _family("Stripe key", "sk_", r"(?:live|test)_[A-Za-z0-9]{16,}+"),
    _family("API key", "sk_", rf"{_HEX}{{48}}{_END}"),
    _family("Stripe key", "rk_", r"(?:live|test)_[A-Za-z0-9]{16,}+"),
    _family("Mapbox token", "sk.eyJ", rf"{_ANY}{{30,}}+\.{_ANY}{{16,}}+"),
    _family("webhook secret", "whsec_", r"[A-Za-z0-9+/=]{24,}+", drawn=True),
    _family("AWS key id", "AKIA", rf"[A-Z0-9]{{16}}{_END}"),
    _family("AWS key id", "ASIA", rf"[A-Z0-9]{{16}}{_END}"),
    _family("Alibaba key id", "LTAI", rf"[A-Za-z0-9]{{12,24}}+{_END}", drawn=True),
    _family("Artifactory token", "AKC", r"[A-Za-z0-9]{60,}+", drawn=True),
    _family("Atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{100,}+"),
    _family("Bitbucket token", "ATBB", rf"[A-Za-z0-9]{{32}}{_END}", drawn=True),
    _family("GitHub token", "gh", r"[pousr]_[A-Za-z0-9]{36,}+"),
    _family("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,}+"),
    _family("GitLab token", "glpat-", rf"{_ANY}{{20,}}+"),
    _family("GitLab token", "gl", rf"(?:dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-{_ANY}{{20,}}+", drawn=True),
    _family("Grafana token", "glsa_", rf"[A-Za-z0-9]{{32}}_{_HEX}{{8}}"),
    _family("Grafana token", "glc_", r"[A-Za-z0-9+/=]{32,}+", drawn=True),
    _family("Slack token", "xox", r"[abceoprs]-[A-Za-z0-9-]{10,}+", drawn=True),
    _family("Slack token", "xapp-", r"[A-Za-z0-9-]{20,}+", drawn=True),
    _family("Slack webhook", "hooks.slack.com/", r"(?:services|workflows)/[A-Za-z0-9_/-]{20,}+"),
    _family("Discord webhook", "discord.com/api/webhooks/", rf"[0-9]{{10,}}+/{_ANY}{{40,}}+"),
    _family("Google key", "AIza", rf"{_ANY}{{35,}}+"),
    _family("Google token", "ya29.", rf"{_ANY}{{20,}}+"),
    _family("Google secret", "GOCSPX-", rf"{_ANY}{{20,}}+"),
    _family("npm token", "npm_", r"[A-Za-z0-9]{36,}+"),
    _family("PyPI token", "pypi-", rf"{_ANY}{{50,}}+"),
    _family("RubyGems key", "rubygems_", rf"{_HEX}{{48}}{_END}"),
    _family("Hugging Face token", "hf_", r"[A-Za-z0-9]{30,}+"),
    _family("Groq key", "gsk_", r"[A-Za-z0-9]{40,}+"),
    _family("xAI key", "xai-", r"[A-Za-z0-9]{60,}+"),
    _family("NVIDIA key", "nvapi-", rf"{_ANY}{{40,}}+"),
    _family("Replicate token", "r8_", r"[A-Za-z0-9]{37,}+", drawn=True),
    _family("Perplexity key", "pplx-", r"[A-Za-z0-9]{40,}+", drawn=True),
    _family("Fireworks key", "fw_", rf"[A-Za-z0-9]{{22,30}}+{_END}", drawn=True),
    _family("Pinecone key", "pcsk_", r"[A-Za-z0-9_]{40,}+", drawn=True),
    _family("LangSmith key", "lsv2_", rf"[a-z]{{2}}_{_HEX}{{32}}_{_HEX}{{10}}"),
    _family("SendGrid key", "SG.", rf"{_ANY}{{16,64}}+\.{_ANY}{{16,}}+"),
    _family("Twilio key", "SK", rf"{_HEX}{{32}}{_END}"),
    _family("Twilio account", "AC", rf"{_HEX}{{32}}{_END}"),
    _family("Mailgun key", "key-", rf"{_HEX}{{32}}{_END}"),
    _family("MailerSend token", "mlsn.", rf"{_HEX}{{60,}}+"),
    _family("Square key", "sq0", rf"(?:csp|atp|idp)-{_ANY}{{22,}}+"),
    _family("Square token", "EAAA", rf"{_ANY}{{56,}}+", drawn=True),
    _family("Shopify token", "shp", rf"(?:at|ca|pa|ss)_{_HEX}{{32}}{_END}"),
    _family("EasyPost key", "EZ", r"[AT]K[A-Za-z0-9]{54}"),
    _family("Linear key", "lin_", r"(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    _family("Notion token", "ntn_", r"[A-Za-z0-9]{40,}+"),
    _family("Figma token", "figd_", rf"{_ANY}{{36,}}+"),
    _family("Postman key", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    _family("New Relic key", "NRAK-", r"[A-Z0-9]{27}"),
    _family("Sentry token", "sntry", r"[su]_[A-Za-z0-9+/=_-]{40,}+"),
    _family("Doppler token", "dp.", r"(?:pt|st|ct|scim|audit|sa)\.[A-Za-z0-9.]{40,}+"),
    _family("PlanetScale token", "pscale_", rf"(?:tkn|pw|oauth)_{_ANY}{{32,}}+"),
    _family("Supabase token", "sbp_", rf"{_HEX}{{40}}{_END}"),
    _family("Netlify token", "nfp_", r"[A-Za-z0-9]{36,}+"),
    _family("Heroku token", "HRKU-", rf"{_ANY}{{30,}}+"),
    _family("Airtable token", "pat", rf"[A-Za-z0-9]{{14}}\.{_HEX}{{64}}"),
    _family("Pulumi token", "pul-", rf"{_HEX}{{40}}{_END}"),
    _family("Tailscale key", "tskey-", r"[a-z]{2,12}-[A-Za-z0-9-]{20,}+"),
    _family("Dynatrace token", "dt0", r"[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _family("Contentful token", "CFPAT-", rf"{_ANY}{{40,}}+"),
    _family("CircleCI token", "CCIPAT_", rf"[A-Za-z0-9]{{16,}}+_{_HEX}{{40}}"),
    _family("Buildkite token", "bkua_", rf"{_HEX}{{40}}{_END}"),
    _family("1Password token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{200,}+"),
    _family("IBM key", "apikey-", rf"[A-Za-z0-9]{{32,}}+{_END}", drawn=True),
    _family("Databricks token", "dapi", rf"{_HEX}{{32}}{_END}"),
    _family("DigitalOcean token", "do", rf"[opr]_v1_{_HEX}{{64}}"),
    _family("Docker token", "dckr_", rf"[a-z]{{2,4}}_{_ANY}{{20,}}+"),
    _family("Vault token", "hvs.", rf"{_ANY}{{24,}}+"),
    _family("Vault token", "hvb.", rf"{_ANY}{{100,}}+"),
    _family("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}+"),
    _family("JWT", "eyJ", rf"(?<!{_ANY}eyJ){_ANY}{{8,}}+\.eyJ{_ANY}{{8,}}+\.{_ANY}*+"),
    _family("bot token", "AA", rf"(?<=[0-9]:AA){_ANY}{{33}}(?!{_ANY})"),
    _family("gateway capability", "lw-", rf"(?=[A-Za-z_-]{{0,31}}+[0-9]){_ANY}{{32}}(?!{_ANY})"),
    _family("password hash", "$apr1$", r"[./A-Za-z0-9]{1,8}+\$[./A-Za-z0-9]{22}"),
    _family("password hash", "$1$", r"[./A-Za-z0-9]{1,8}+\$[./A-Za-z0-9]{22}"),
    _family("password hash", "$2", r"[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}"),
    _family("password hash", "$5$", r"(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}+\$[./A-Za-z0-9]{43}"),
    _family("password hash", "$6$", r"(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}+\$[./A-Za-z0-9]{86}"),
    _family("password hash", "$y$", r"[./A-Za-z0-9]{1,16}+\$[./A-Za-z0-9]{1,64}+\$[./A-Za-z0-9]{43}"),
    _family("password hash", "$argon2", r"[a-z]{1,2}\$[A-Za-z0-9+/=,$]{40,}+"),
    _around("Mailchimp key", "-us", rf"{_HEX}{{32}}", rf"[0-9]{{1,2}}{_END}"),
    _around("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}", rf"{_ANY}{{60,}}+"),
    _around("Azure secret", "8Q~", r"[A-Za-z0-9_~.-]{3}", r"[A-Za-z0-9_~.-]{31,34}+"),
)
_DISCORD = re.compile(rf"[MNO](?<![\w.-][MNO]){_ANY}{{23,27}}+\.{_ANY}{{6}}\.{_ANY}{{27,38}}+(?![\w-])")


def keys_in(text: str) -> Iterator[Found]:
    """Yield the keys in a text, family by family."""
    for family in FAMILIES:
        if family.literal not in text:
            continue
        for match in family.pattern.finditer(text):
            if not family.drawn or is_random(match[0][len(family.literal) :]):
                yield Found(match.start(), match.end(), family.kind)
    for match in _DISCORD.finditer(text):
        if is_mixed(match[0]):
            yield Found(match.start(), match.end(), "bot token")


_OPTION_GAP = r"""(?:[\s,"']|\\+["'n])"""
"""What stands between two words: on a command line, in a list of arguments, in a string."""
_VALUE = r"""[^\s"'`\\,;|&<>]"""
_SECRET = rf"(?P<secret>{_VALUE}{{4,128}}+)"
_CLUSTER = r"-(?=[A-Za-z]{0,7}b)(?![A-Za-z]{0,7}n)[A-Za-z]{1,8}+"
"""Options of htpasswd that take the password from the command line."""
_PRINTING = r"-(?=[A-Za-z]{0,7}b)(?=[A-Za-z]{0,7}n)[A-Za-z]{1,8}+"
"""The same without a file."""
_FLAG = re.compile(
    rf"""(?<=[\s"'])(?:-[A-Za-z]{{0,6}}u|--(?:proxy-)?user)(?:{_OPTION_GAP}|=){{0,4}}+(?P<user>[^\s"'`\\:@/=]{{1,64}}+):(?P<secret>[^\s"'`\\]{{3,128}}+)"""
)
_MYSQL = re.compile(rf"""(?<=[\s"'])-p["']?(?P<secret>{_VALUE}{{4,128}}+)""")
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
_THOUGHT_OF = (
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
"""Passwords on the command lines of programs whose manuals show words in their place."""
_WRITTEN = (
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
_SESSIONS = re.compile(r"sess|sid\b|auth|token|csrf|xsrf|jwt|remember|login|secret|key", re.IGNORECASE)
_AUTH = re.compile(
    r"""_?auth(?:\\*["']){0,2}[ ]{0,2}[:=][ ]{0,2}(?:\\*["'])?(?P<secret>[A-Za-z0-9+/]{8,2048}+={0,2})"""
)
_OWN_HEADER = re.compile(
    rf"""x-lowwater-key(?:\\*["'\]]){{0,3}}[ \t]{{0,4}}[:=,][ \t]{{0,4}}(?:\\*["'])?(?P<secret>{_VALUE}{{3,256}}+)"""
)
_OWN_KEYS = re.compile(
    r"""lowwater_gateway_keys(?:\\*["'\]]){0,3}[ \t]{0,4}[:=][ \t]{0,4}(?:\\*["'])?(?P<secret>[^\s"'`\\;|&<>]{3,1024}+)"""
)
_DEFINED = re.compile(
    r"""define\(\s{0,4}["']\w{0,40}(?:PASSWORD|SECRET|SALT|TOKEN|API_KEY|AUTH_KEY)\w{0,20}["']\s{0,4},\s{0,4}["'](?P<secret>[^"'\n]{6,256}+)["']"""
)
_NEAR = 400
"""Characters of a command before its option."""
_NUMBERS = re.compile(r"[0-9:./-]+")


def commands_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield passwords that command lines and the files of well-known programs hold."""
    if "curl" in lowered:
        yield from _of_command(_FLAG, text, ("curl",))
    if "mysql" in lowered or "mariadb" in lowered:
        yield from _of_command(_MYSQL, text, ("mysql", "mariadb"))
    for word, pattern in _OPTIONS:
        if word in text:
            yield from _plain(pattern, text, "password")
    for word, pattern in _THOUGHT_OF:
        if word in text:
            yield from filter(partial(_is_thought_of, text), _plain(pattern, text, "password"))
    for word, kind, pattern in _WRITTEN:
        if word in text:
            yield from _plain(pattern, text, kind)
    if ":5432:" in text or ":*:*:" in text or ":5433:" in text or ":6432:" in text or ":6543:" in text:
        yield from _plain(_PGPASS, text, "password")
    if "define(" in text:
        yield from _plain(_DEFINED, text, "password")
    if "lowwater" in lowered:
        yield from _own(text, lowered)


def cookies_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield the values of cookies that identify somebody."""
    if "cookie" not in lowered and "curl" not in lowered:
        return
    for opened in _COOKIE.finditer(lowered):
        if opened[0].lstrip("\"'").startswith("-b") and not _follows(text, opened.start(), ("curl",)):
            continue
        at = opened.end()
        while pair := _PAIR.match(text, at):
            at = pair.end()
            if _identifies(pair["name"], pair["secret"]):
                yield Found(pair.start("secret"), pair.end("secret"), "cookie")


def encoded_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield what Docker and npm write under `auth`: a name and a password in base64."""
    if "auth" not in lowered:
        return
    for match in _AUTH.finditer(lowered):
        start, end = match.span("secret")
        if is_encoded_pair(text[start:end]):
            yield Found(start, end, "credentials")


def is_encoded_pair(value: str) -> bool:
    """Tell whether a value is a name and a password in base64, as `Basic` takes them."""
    try:
        told = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    name, colon, password = told.partition(":")
    return bool(name and colon and password) and told.isprintable()


def _of_command(pattern: re.Pattern[str], text: str, commands: tuple[str, ...]) -> Iterator[Found]:
    for match in pattern.finditer(text):
        if _follows(text, match.start(), commands) and _is_given(match["secret"]):
            yield Found(match.start("secret"), match.end("secret"), "password")


def _follows(text: str, at: int, commands: tuple[str, ...]) -> bool:
    """Tell whether one of these commands stands before an option, on its line or on lines that it continues."""
    before = text[max(0, at - _NEAR) : at]
    starts = max(before.rfind(command) for command in commands)
    return starts >= 0 and not re.search(r"(?<!\\)\n|[|;&]", before[starts:])


def _plain(pattern: re.Pattern[str], text: str, kind: str) -> Iterator[Found]:
    for match in pattern.finditer(text):
        if _is_given(match["secret"]):
            yield Found(match.start("secret"), match.end("secret"), kind)


def _is_thought_of(text: str, found: Found) -> bool:
    value = text[found.start : found.end]
    return is_chosen(value) or is_worded(value)


def _own(text: str, lowered: str) -> Iterator[Found]:
    for pattern in (_OWN_HEADER, _OWN_KEYS):
        for match in pattern.finditer(lowered):
            start, end = match.span("secret")
            if not is_blank(text[start:end]):
                yield Found(start, end, "gateway key")


def _is_given(value: str) -> bool:
    """Tell whether a value is written out, and is no number, address or variable."""
    return not is_blank(value) and _NUMBERS.fullmatch(value) is None


def _identifies(name: str, value: str) -> bool:
    if is_blank(value) or len(value) < 8:
        return False
    if _SESSIONS.search(name):
        return len(value) >= 16 or is_random(value) or is_mixed(value)
    return len(value) >= 16 and is_random(value)


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
_USER = re.compile(
    r"""://(?P<user>[^\s/@:"'<>`\\]{0,128}+)(?::(?P<secret>[^\s/@"'<>`\\]{1,256}+))?@(?!sha256)(?=[\w\[$%{])"""
)
_CAPITALS = re.compile(r"[A-Z_]+")
"""How documents write what the reader is to fill in."""
_SHORTEST = 16


def headers_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield the credentials of `Authorization` headers and whatever follows `Bearer`."""
    for match in _BEARER.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and not is_blank(value[0]) and _bears(value[0]):
            yield Found(value.start(), value.end(), "bearer token")
    for match in _AUTHORIZATION.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and not is_blank(value[0]) and _authorizes(match["scheme"] or "", value[0]):
            yield Found(value.start(), value.end(), "credentials")


def key_headers_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield what stands in headers that hold nothing but keys, whatever it looks like."""
    for match in _KEY_HEADER.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and len(value[0]) >= _SHORTEST and not is_blank(value[0]) and is_chosen(value[0]):
            yield Found(value.start(), value.end(), "key")


def addresses_in(text: str) -> Iterator[Found]:
    """Yield the passwords, tokens and signatures in URLs."""
    if "://" not in text:
        return
    for match in _USER.finditer(text):
        name = "secret" if match["secret"] else "user"
        value = match[name]
        if (
            not is_blank(value)
            and not _CAPITALS.fullmatch(value)
            and (name == "secret" or (len(value) >= _SHORTEST and is_random(value)))
        ):
            yield Found(match.start(name), match.end(name), "password" if name == "secret" else "token")
    for match in _SIGNATURE.finditer(text):
        if is_random(match["secret"]):
            yield Found(match.start("secret"), match.end("secret"), "signature")


def _bears(value: str) -> bool:
    return len(value) >= _SHORTEST and (is_mixed(value) or is_random(value))


def _authorizes(scheme: str, value: str) -> bool:
    if scheme == "basic":
        return is_encoded(value) or is_encoded_pair(value)
    return _bears(value)


_LONGEST = 1_024
"""Characters within which a quoted value ends; longer ones are documents."""
_SHORTEST_VALUE = 6
_DRAWN = 8
"""Letters of a drawn password that has no digit."""
_SEPARATED = (
    r"""(?:\\*["'`\]]){0,3}[ \t]{0,8}"""
    r"""(?::[ ]{0,2}(?:str|string)(?:[ ]?\|[ ]?none)?[ ]?=(?!=)|:=|=>|={1,3}|:(?![:/])|>|(?<![ \t])(?=[ ]))[ \t]{0,4}"""
)
_NAMED = tuple((stem, re.compile(stem.word + stem.tail + _SEPARATED)) for stem in STEMS)
_OPENS = re.compile(r"""[bBrRuUfF]?(\\*["'`])""")
_BARE = re.compile(r"""[^\s"'`,;&<>(){}\[\]|\\]*[^\s"'`,;&<>(){}\[\]|\\.:!?…]""")
_ALONE = re.compile(r"(?:\A|\n|\\n)[ \t]*(?:- |export |set |ENV |ARG )?[ \t]*\Z")
_CALLS = frozenset("([{")
"""What follows a name that is called or indexed."""
_PLAIN_WORD = re.compile(r"[a-z]{8,}")


class _Place(NamedTuple):
    """Where something is assigned: the name begins at `starts`, the value at `at`."""

    text: str
    kind: str
    head: str
    """How the name begins, before the word that tells its kind."""
    starts: int
    said: str
    """The rest of the name and the separator, in lower case."""
    at: int

    @property
    def is_typed(self) -> bool:
        """Whether the name is one of a type, as in `AWS::IAM::AccessKey`, under which no value stands."""
        return self.text[max(0, self.starts - 2) : self.starts] == "::"

    @property
    def is_flag(self) -> bool:
        """Whether the name is an option of a command."""
        return self.head.startswith("--")

    @property
    def is_apart(self) -> bool:
        """Whether only a space separates name and value."""
        return self.said.rstrip()[-1:].isalnum()

    @property
    def is_tight(self) -> bool:
        """Whether `=` alone separates them."""
        return self.said.endswith("=") and not self.said.endswith(("==", " ="))

    @property
    def is_tag(self) -> bool:
        """Whether the name is an XML tag."""
        return self.said.endswith(">") and not self.said.endswith("=>")

    @property
    def name(self) -> str:
        """The whole name, as it is written."""
        return self.text[self.starts : self.at].rstrip(" =")


def assignments_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield the values that are assigned to names which announce a secret, if they look like one."""
    for stem, pattern in _NAMED:
        read = 0
        for match in pattern.finditer(lowered):
            # A name inside a bare value is part of it; reading on from each would take the square of its length.
            if match.start() < read:
                continue
            head = head_before(text, match.start())
            if not announces(stem, head.lower()):
                continue
            place = _Place(text, stem.kind, head, match.start() - len(head), match[0], match.end())
            value = None if place.is_typed or (place.is_apart and not place.is_flag) else _value_at(place)
            if value is None:
                continue
            read = read if value.quoted else value.end
            if _is_secret(place, value):
                yield Found(value.start, value.end, stem.kind)


def is_kept_secret(kind: str, value: str) -> bool:
    """Tell whether a quoted value that was assigned to such a name looks like a secret."""
    if len(value) < _SHORTEST_VALUE or is_blank(value):
        return False
    if any(map(str.isspace, value)):
        return kind == "password" and is_phrase(value)
    return _is_password(value) if kind == "password" else is_random(value)


def _is_password(value: str) -> bool:
    return is_chosen(value) or is_worded(value) or (len(value) >= _DRAWN and is_encoded(value))


class _Value(NamedTuple):
    """Where the value stands that is assigned at a place."""

    start: int
    end: int
    quoted: bool


def _value_at(place: _Place) -> _Value | None:
    """Return where the value stands; one whose quotes do not close ends like one that has none."""
    at = place.at
    opened = _OPENS.match(place.text, at)
    if opened is not None:
        at = opened.end()
        end = place.text.find(opened[1], at, at + _LONGEST)
        if end >= 0:
            return _Value(at, end, quoted=True)
    bare = _BARE.match(place.text, at)
    return None if bare is None else _Value(at, bare.end(), quoted=False)


def _is_secret(place: _Place, value: _Value) -> bool:
    said = place.text[value.start : value.end]
    if value.quoted:
        return is_kept_secret(place.kind, said)
    behind = place.text[value.end : value.end + 2]
    if behind[:1] in _CALLS or (place.is_tag and behind != "</"):
        return False
    if len(said) < _SHORTEST_VALUE or is_blank(said):
        return False
    return is_random(said) or (value.start == place.at and _is_told(place, said))


def _is_told(place: _Place, value: str) -> bool:
    """Tell whether a value that does not look random is a secret by where it stands."""
    if place.is_tight and place.name.isupper():
        return _is_variable(place.kind, value)
    if place.kind != "password" or not _is_password(value):
        return False
    if place.is_flag or place.is_tag or (place.is_tight and place.head.startswith("ansible_")):
        return True
    if place.is_tight and place.text[max(0, place.starts - 1) : place.starts] in {"?", "&", ";"}:
        return True
    ends = place.at + len(value)
    fills_line = place.text[ends : ends + 1] in {"", "\n", "\r", "\\"}
    return fills_line and _ALONE.search(place.text[max(0, place.starts - 40) : place.starts]) is not None


def _is_variable(kind: str, value: str) -> bool:
    """Tell whether a variable of the environment is a secret; its name is in capitals, so it is no keyword of a call."""
    if kind == "password":
        return _is_password(value) or _PLAIN_WORD.fullmatch(value) is not None
    if kind == "secret" and is_worded(value):
        return True
    return len(value) >= _SHORTEST_VALUE + 2 and is_chosen(value) and not value.isdigit()
