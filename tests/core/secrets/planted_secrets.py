"""Secrets of many kinds as they stand in files, shells and logs; all of them are drawn here, none was ever given out."""

import random
from base64 import b64encode
from collections.abc import Callable, Iterator
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits

from msgspec import Struct

_ANY = ascii_letters + digits
_HEX = hexdigits[:16]
_WORDS = "correct horse battery staple orange window silver garden pencil river".split()


class Planted(Struct, frozen=True, kw_only=True):
    """A text with a secret in it."""

    name: str
    text: str
    secret: str


def planted(seed: int = 14) -> list[Planted]:
    """Return all of them, drawn by this seed."""
    drawing = _Drawing(random.Random(seed))
    return [*_by_place(drawing), *_by_words(drawing), *_by_vendor(drawing)]


class _Drawing:
    def __init__(self, drawn: random.Random) -> None:
        self._drawn = drawn

    def __call__(self, count: int, letters: str = _ANY) -> str:
        """Return so many characters; letters and digits both occur where both may."""
        while True:
            value = "".join(self._drawn.choices(letters, k=count))
            if count < 12 or all(
                any(each in kind for each in value)
                for kind in (ascii_letters, digits)
                if set(kind) & set(letters)
            ):
                return value

    def words(self, count: int, between: str) -> str:
        """Return a password made of words."""
        return between.join(self._drawn.sample(_WORDS, count))


def _by_place(draw: _Drawing) -> Iterator[Planted]:
    """Yield secrets that only their place gives away."""
    basic = b64encode(f"bob:{draw(9)}".encode()).decode()
    proxy = b64encode(f"proxy:{draw(12)}".encode()).decode()
    docker = b64encode(f"robot:{draw(20)}".encode()).decode()
    password, other, token, session = draw(14), draw(10), draw(40), draw(26, ascii_lowercase + digits)
    word = draw.words(2, "-")
    capability, own, cloned, storage = f"lw-{draw(32)}", draw(32, _HEX), draw(40), f"{draw(86)}=="
    encoded = b64encode(f"-----BEGIN EC PRIVATE KEY-----\n{draw(64)}\n".encode()).decode()
    signature, seed = draw(64, _HEX), draw(16, ascii_uppercase + "234567")
    apache, shadow = f"$apr1${draw(8)}${draw(22)}", f"$6${draw(16)}${draw(86)}"
    places = {
        "basic header": (f"Authorization: Basic {basic}", basic),
        "basic header in curl": (f"curl -H 'Authorization: Basic {basic}' https://x.example.com", basic),
        "proxy authorization": (f"Proxy-Authorization: Basic {proxy}", proxy),
        "bearer header": (f"authorization: Bearer {token}", token),
        "bearer of an unknown kind": (f'-H "Authorization: Bearer {draw(9, _HEX)}-{session}"', session),
        "cookie header": (f"Cookie: theme=dark; session={session}; lang=en", session),
        "set-cookie header": (f"Set-Cookie: sid={session}; Path=/; HttpOnly", session),
        "cookie of curl": (f"curl -b 'sessionid={session}' https://x.example.com/me", session),
        "cookie option": (f'curl --cookie "auth={token}" https://x.example.com/me', token),
        "cookie in JSON": (f'{{"cookie": "connect.sid={session}"}}', session),
        "curl -u": (f"curl -u bob:{other} https://x.example.com/api", other),
        "curl -u in quotes": (f"curl -s -u 'bob:{password}' https://x.example.com/api", password),
        "curl --user": (f"curl --user bob:{password} https://x.example.com", password),
        "curl -u of words": (f"curl -fsS -u admin:{word} https://x.example.com/api", word),
        "wget --password": (f"wget --http-password={password} https://x.example.com", password),
        "netrc on a line": (f"machine api.example.com login bob password {word}", word),
        "netrc on lines": (f"machine git.example.com\n  login bob\n  password {other}\n", other),
        "pgpass": (f"db.example.com:5432:app:bob:{word}", word),
        "pgpass of any database": (f"*:*:*:postgres:{other}", other),
        "docker auth": (f'{{"auths": {{"registry.example.com": {{"auth": "{docker}"}}}}}}', docker),
        "docker identity token": (f'{{"identitytoken": "{token}"}}', token),
        "npmrc auth": (f"//registry.example.com/:_authToken={token}", token),
        "npmrc basic": (f"//registry.example.com/:_auth={docker}", docker),
        "our own header": (f"x-lowwater-key: {word}", word),
        "our own header in curl": (f'curl -H "x-lowwater-key: {other}" http://127.0.0.1:4141/metrics', other),
        "our own keys": (f"LOWWATER_GATEWAY_KEYS={word},{other}", word),
        "our own keys, the second": (f"export LOWWATER_GATEWAY_KEYS='{word},{other}'", other),
        "our own capability": (f"ANTHROPIC_BASE_URL=http://127.0.0.1:40123/{capability}", capability),
        "x-api-key header": (f"x-api-key: {own}", own),
        "x-auth-token header": (f"X-Auth-Token: {session}", session),
        "url password": (f"postgres://bob:{other}@db.example.com/app", other),
        "url token": (f"https://{cloned}@git.example.com/a/b.git", cloned),
        "jdbc": (f"jdbc:postgresql://db/app?user=bob&password={other}", other),
        "mysql -p": (f"mysql -h db -u bob -p{password} app", password),
        "mysql --password": (f"mysqldump --password={word} app", word),
        "sshpass": (f"sshpass -p {other} ssh bob@host", other),
        "redis-cli -a": (f"redis-cli -h cache -a {password} ping", password),
        "PGPASSWORD": (f"PGPASSWORD={word} psql -h db app", word),
        "connection string": (f"Server=db;Database=app;User Id=bob;Password={word};", word),
        "azure storage": (
            f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={storage};EndpointSuffix=x",
            storage,
        ),
        "kubernetes secret": (f"stringData:\n  password: {word}\n", word),
        "htpasswd": (f"bob:{apache}", apache),
        "pass of a database": (f"export DB_PASS={other}", other),
        "pass of words": (f"DB_PASS={word}", word),
        "pass in JSON": (f'{{"smtp_pass": "{other}"}}', other),
        "ansible": (f"ansible_ssh_pass={word}", word),
        "ansible inventory": (f"web1 ansible_host=10.0.0.7 ansible_become_pass={word} ansible_port=22", word),
        "kubeconfig": (f"    client-key-data: {encoded}\n", encoded),
        "signed for S3": (
            f"https://b.s3.example.com/k?X-Amz-Expires=60&X-Amz-Signature={signature}",
            signature,
        ),
        "htpasswd -b": (f"htpasswd -b /etc/nginx/users bob {word}", word),
        "htpasswd -nb": (f"docker run httpd htpasswd -nbB bob {word}", word),
        "zip -P": (f"zip -r -P {word} a.zip folder", word),
        "unzip -P": (f"unzip -P{other}7 a.zip", f"{other}7"),
        "openssl -k": (f"openssl enc -aes-256-cbc -in a -out b -k {word}", word),
        "openssl -pass": (f"openssl rsa -in key.pem -passin pass:{word}", word),
        "one-time passwords": (f"otpauth://totp/App:bob?issuer=App&secret={seed}&digits=6", seed),
        "shadow": (f"bob:{shadow}:19000:0:99999:7:::", shadow),
    }
    for name, (text, secret) in places.items():
        yield Planted(name=name, text=text, secret=secret)


def _by_words(draw: _Drawing) -> Iterator[Planted]:
    """Yield passwords that somebody thought of: words alone, under a name that says what they are."""
    dashed, joined, spaced, one = (
        draw.words(3, "-"),
        draw.words(3, ""),
        draw.words(4, " "),
        draw.words(3, ""),
    )
    texts = {
        "environment file": (f"DB_PASSWORD={dashed}", dashed),
        "environment file, joined": (f"ADMIN_PASSWORD={joined}", joined),
        "yaml": (f"database:\n  password: {dashed}\n", dashed),
        "yaml in quotes": (f'  password: "{joined}"', joined),
        "python": (f'password = "{dashed}"', dashed),
        "json": (f'{{"user": "bob", "password": "{one}"}}', one),
        "json passphrase": (f'{{"passphrase": "{spaced}"}}', spaced),
        "toml passphrase": (f'passphrase = "{spaced}"', spaced),
        "secret of words": (f"SECRET_KEY={dashed}", dashed),
        "shell": (f"export MYSQL_PWD='{joined}'", joined),
        "flag": (f"tool --password {dashed} --verbose", dashed),
        "properties": (f"spring.datasource.password={joined}", joined),
        "php": (f"define('DB_PASSWORD', '{dashed}');", dashed),
    }
    for name, (text, secret) in texts.items():
        yield Planted(name=f"words: {name}", text=text, secret=secret)


_VENDORS: dict[str, Callable[[_Drawing], str]] = {
    "Anthropic": lambda draw: f"sk-ant-api03-{draw(93)}AA",
    "OpenAI": lambda draw: f"sk-{draw(20)}T3BlbkFJ{draw(20)}",
    "OpenAI project": lambda draw: f"sk-proj-{draw(74)}T3BlbkFJ{draw(74)}",
    "OpenRouter": lambda draw: f"sk-or-v1-{draw(64, _HEX)}",
    "AWS id": lambda draw: f"AKIA{draw(16, ascii_uppercase + digits)}",
    "GitHub": lambda draw: f"ghp_{draw(36)}",
    "GitHub fine-grained": lambda draw: f"github_pat_{draw(22)}_{draw(59)}",
    "GitLab": lambda draw: f"glpat-{draw(20)}",
    "Slack": lambda draw: f"xoxb-{draw(11, digits)}-{draw(12, digits)}-{draw(24)}",
    "Google": lambda draw: f"AIza{draw(35)}",
    "npm": lambda draw: f"npm_{draw(36)}",
    "PyPI": lambda draw: f"pypi-AgEIcHlwaS5vcmc{draw(70)}",
    "Stripe": lambda draw: "sk_" + f"live_{draw(24)}",
    "SendGrid": lambda draw: f"SG.{draw(22)}.{draw(43)}",
    "Twilio": lambda draw: f"SK{draw(32, _HEX)}",
    "Twilio account": lambda draw: f"AC{draw(32, _HEX)}",
    "Mailchimp": lambda draw: f"{draw(32, _HEX)}-us12",
    "Mailgun": lambda draw: f"key-{draw(32, _HEX)}",
    "Square": lambda draw: f"sq0csp-{draw(43)}",
    "Square access": lambda draw: f"EAAA{draw(60)}",
    "Shopify": lambda draw: f"shpat_{draw(32, _HEX)}",
    "Discord": lambda draw: f"M{draw(23)}.{draw(6)}.{draw(27)}",
    "Telegram": lambda draw: f"{draw(10, digits)}:AA{draw(33)}",
    "Hugging Face": lambda draw: f"hf_{draw(34, ascii_letters)}",
    "Replicate": lambda draw: f"r8_{draw(37)}",
    "Perplexity": lambda draw: f"pplx-{draw(48)}",
    "Pinecone": lambda draw: f"pcsk_{draw(6)}_{draw(63)}",
    "Linear": lambda draw: f"lin_api_{draw(40)}",
    "Notion": lambda draw: f"ntn_{draw(46)}",
    "Figma": lambda draw: f"figd_{draw(40)}",
    "Postman": lambda draw: f"PMAK-{draw(24, _HEX)}-{draw(34, _HEX)}",
    "New Relic": lambda draw: f"NRAK-{draw(27, ascii_uppercase + digits)}",
    "Grafana": lambda draw: f"glsa_{draw(32)}_{draw(8, _HEX)}",
    "Sentry": lambda draw: f"sntryu_{draw(64, _HEX)}",
    "Doppler": lambda draw: f"dp.pt.{draw(43)}",
    "PlanetScale": lambda draw: f"pscale_tkn_{draw(43)}",
    "Supabase": lambda draw: f"sbp_{draw(40, _HEX)}",
    "Netlify": lambda draw: f"nfp_{draw(40)}",
    "Terraform": lambda draw: f"{draw(14)}.atlasv1.{draw(64)}",
    "Atlassian": lambda draw: f"ATATT3xFfGF0{draw(180)}",
    "Bitbucket": lambda draw: f"ATBB{draw(32)}",
    "Heroku": lambda draw: f"HRKU-AA{draw(58)}",
    "Airtable": lambda draw: f"pat{draw(14)}.{draw(64, _HEX)}",
    "Artifactory": lambda draw: f"AKCp8{draw(68)}",
    "Azure client": lambda draw: f"{draw(3)}8Q~{draw(34)}",
    "Alibaba": lambda draw: f"LTAI{draw(20)}",
    "RubyGems": lambda draw: f"rubygems_{draw(48, _HEX)}",
    "Pulumi": lambda draw: f"pul-{draw(40, _HEX)}",
    "Tailscale": lambda draw: f"tskey-auth-{draw(17)}-{draw(32)}",
    "LangSmith": lambda draw: f"lsv2_pt_{draw(32, _HEX)}_{draw(10, _HEX)}",
    "Langfuse": lambda draw: f"sk-lf-{draw(8, _HEX)}-{draw(4, _HEX)}-{draw(4, _HEX)}-{draw(12, _HEX)}",
    "Dynatrace": lambda draw: (
        f"dt0c01.{draw(24, ascii_uppercase + digits)}.{draw(64, ascii_uppercase + digits)}"
    ),
    "EasyPost": lambda draw: f"EZAK{draw(54)}",
    "Databricks": lambda draw: f"dapi{draw(32, _HEX)}",
    "Vault": lambda draw: f"hvs.{draw(90)}",
    "Vault, batch": lambda draw: f"hvb.{draw(140)}",
    "1Password": lambda draw: f"ops_eyJ{draw(260)}",
    "Mapbox": lambda draw: f"sk.eyJ{draw(60)}.{draw(22)}",
    "Contentful": lambda draw: f"CFPAT-{draw(43)}",
    "CircleCI": lambda draw: f"CCIPAT_{draw(22)}_{draw(40, _HEX)}",
    "Buildkite": lambda draw: f"bkua_{draw(40, _HEX)}",
    "Slack webhook": lambda draw: f"hooks.slack.com/services/T{draw(8)}/B{draw(8)}/{draw(24)}",
    "Discord webhook": lambda draw: f"discord.com/api/webhooks/{draw(18, digits)}/{draw(68)}",
    "Fireworks": lambda draw: f"fw_{draw(24)}",
    "Cloudant": lambda draw: f"apikey-{draw(32)}",
}


def _by_vendor(draw: _Drawing) -> Iterator[Planted]:
    """Yield keys that vendors give out, in running text, where no name announces them."""
    for name, drawn in _VENDORS.items():
        key = drawn(draw)
        yield Planted(name=name, text=f"It answered with {key} and then stopped.", secret=key)
