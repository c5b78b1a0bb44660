"""Keys that providers give out: each kind is known by how it begins, or by something in its middle.

A family is looked for only in a text that has its literal, which is found at the speed of a plain search. A pattern takes
whatever may belong to the key and never goes back, so that no text makes it slow.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from lowwater.values.secrets.found import Found
from lowwater.values.secrets.strength import is_mixed, is_random


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
