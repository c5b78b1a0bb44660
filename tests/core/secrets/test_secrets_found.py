"""Secrets of every kind are concealed wherever they stand; what only looks like one stays."""

import itertools
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.secrets.redaction import conceal

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + string.digits
URLSAFE = LETTERS + "-_"
BASE64 = LETTERS + "+/"

GIVEN_OUT = {
    "anthropic": ("sk-ant-" + "api03-", URLSAFE, 93),
    "openai": ("sk-" + "proj-", LETTERS, 48),
    "deepseek": ("sk-", HEX, 32),
    "openrouter": ("sk-" + "or-v1-", HEX, 64),
    "stripe": ("sk_" + "live_", LETTERS, 24),
    "stripe restricted": ("rk_" + "test_", LETTERS, 24),
    "aws": ("AK" + "IA", CAPITALS, 16),
    "aws session": ("AS" + "IA", CAPITALS, 16),
    "github": ("gh" + "p_", LETTERS, 36),
    "github app": ("gh" + "s_", LETTERS, 36),
    "github fine-grained": ("github" + "_pat_", LETTERS + "_", 82),
    "gitlab": ("gl" + "pat-", LETTERS, 20),
    "slack": ("xox" + "b-123456789012-", LETTERS, 24),
    "google": ("AI" + "za", URLSAFE, 35),
    "google token": ("ya" + "29.", URLSAFE, 60),
    "google secret": ("GOC" + "SPX-", URLSAFE, 28),
    "npm": ("np" + "m_", LETTERS, 36),
    "pypi": ("pypi" + "-AgEIcHlwaS5vcmc", URLSAFE, 120),
    "hugging face": ("h" + "f_", LETTERS, 34),
    "groq": ("gs" + "k_", LETTERS, 52),
    "databricks": ("da" + "pi", HEX, 32),
    "digital ocean": ("do" + "p_v1_", HEX, 64),
    "vault": ("hv" + "s.", LETTERS, 90),
    "age": ("AGE-" + "SECRET-KEY-1", CAPITALS, 58),
}
AROUND = (
    "{}",
    "the key is {} and it works",
    "$ curl -H 'X: {}' https://api.test/v1\nHTTP/2 200",
    "line one\\n{}\\nline three",
    '{{"content": "{}", "n": 1}}',
    "1\tfirst\n2\t{}\n3\tlast",
    "値は{}です",
    "({})",
    "`{}`,",
)
NAMED = {
    "env": "DATABASE_TOKEN={}\n",
    "export": "export SERVICE_API_KEY='{}'",
    "yaml": "auth:\n  client_secret: {}\n  other: 1",
    "json": '{{"user": "x", "access_token": "{}", "n": 1}}',
    "json in a string": '"{{\\"apiKey\\": \\"{}\\"}}"',
    "python": "client = Client(token='{}', retries=3)",
    "annotated": 'password: str = "{}"',
    "environ": 'os.environ["API_KEY"] = "{}"',
    "javascript": 'const config = {{ secretKey: "{}" }};',
    "ini": "aws_secret_access_key = {}\nregion = eu",
    "query": "GET /x?access_token={}&page=2",
    "flag": "deploy --api-key {} --verbose",
    "header": "x-api-key: {}\naccept: */*",
    "bearer": "Authorization: Bearer {}\r\nAccept: */*",
    "xml": "<password>{}</password>",
    "connection": "Server=db;User Id=sa;Password={};Database=x",
    "azure": "AccountName=a;AccountKey={}==;EndpointSuffix=core",
    "url": "postgresql://app:{}@db.test:5432/app",
    "token in url": "https://x-access-token:{}@git.test/a/b.git",
    "docker": "ENV NPM_TOKEN={}",
    "go": 'password := "{}"',
    "ruby": ":secret_token => '{}'",
}


@pytest.mark.parametrize("kind", GIVEN_OUT)
@given(seed=st.integers(), around=st.sampled_from(AROUND))
def test_keys_that_providers_give_out_are_concealed_in_any_surroundings(
    kind: str, seed: int, around: str
) -> None:
    begins, alphabet, length = GIVEN_OUT[kind]
    drawn = "".join(random.Random(seed).choices(alphabet, k=length - 8)) + "a8F3k9D2"
    rest = drawn.upper() if alphabet is CAPITALS else drawn.lower() if alphabet is HEX else drawn
    secret = begins + (rest.replace("k", "b") if alphabet is HEX else rest)
    whole = around.format(secret)
    concealed = conceal(whole)
    assert "[redacted: " in concealed
    assert secret[len(begins) :] not in concealed
    assert conceal(concealed) == concealed


@pytest.mark.parametrize("where", NAMED)
def test_random_values_are_concealed_where_their_name_tells(where: str) -> None:
    draw = random.Random(f"values in {where}")
    missed = 0
    for length in (24, 32, 40):
        for _ in range(100):
            secret = "".join(draw.choices(LETTERS, k=length))
            concealed = conceal(NAMED[where].format(secret))
            missed += secret in concealed
            assert secret not in concealed or concealed == NAMED[where].format(secret)
    assert missed <= 6, f"{missed} of 300"


@pytest.mark.parametrize("where", ["env", "json", "ini", "python"])
def test_hexadecimal_and_base64_values_are_concealed_too(where: str) -> None:
    draw = random.Random(f"encodings in {where}")
    missed = 0
    for alphabet, length in ((HEX, 32), (BASE64, 40), (BASE64, 64)):
        for _ in range(100):
            secret = "".join(draw.choices(alphabet, k=length))
            missed += secret in conceal(NAMED[where].format("A" + secret[1:]))
    assert missed <= 6, f"{missed} of 300"


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=correcthorsebattery",
        "POSTGRES_PASSWORD=postgres1",
        "  password: hunter2",
        'password = "hunter2!"',
        "https://user:pass@host/path",
        "redis://:s3cr3t@cache:6379/0",
        "mysql --password hunter22 db",
        "login?user=x&password=hunter2",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        '"api_key": "550e8400-e29b-41d4-a716-446655440000"',
        "https://f3A9x2Lm81Qp7Zw0Kd5v@git.test/a.git",
        "https://a.blob.test/c?sv=2024&sig=aB3%2Fd4E5f6G7h8I9j0K1l2M3n4O5p6Q7%3D",
        "https://hooks.slack.com/" + "services/T00000000/B00000000/aB3dE5fG7hI9jK1lM3nO5pQ7",
    ],
)
def test_chosen_passwords_and_addresses_are_concealed(text: str) -> None:
    assert "[redacted: " in conceal(text)


def test_a_secret_inside_a_quoted_text_under_such_a_name_is_concealed() -> None:
    text = 'token: "first\nthen export API_TOKEN=a8F3kD92mNb4Qz71 and so on"'
    assert conceal(text) == 'token: "first\nthen export API_TOKEN=[redacted: token] and so on"'


@pytest.mark.parametrize(
    ("kind", "line_end"),
    list(
        zip(
            itertools.cycle(["RSA ", "OPENSSH ", "EC ", "ENCRYPTED ", ""]),
            ["\n", "\\n", "\r\n", "\\\\n", '",\n  "', "\n     7→", "\n12\t", "\n> "],
            strict=False,
        )
    ),
)
def test_private_key_blocks_are_concealed_whole(kind: str, line_end: str) -> None:
    draw = random.Random(f"{kind}{line_end}")
    lines = ["".join(draw.choices(BASE64, k=64)) for _ in range(12)] + ["aB3+d4=="]
    begins, ends = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
    concealed = conceal(f"before\n{line_end.join([begins, *lines, ends])}\nafter")
    assert concealed == "before\n[redacted: private key]\nafter"


def test_a_private_key_that_is_cut_off_is_concealed_as_far_as_it_goes() -> None:
    line = "MIIEowIBAAKCAQEAq7Vd8Zk3mMIIEowIBAAKCAQEAq7Vd8Zk3mMIIEowIBAAKCAQ"
    concealed = conceal(f"-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\n… 20 lines left out …\n")
    assert line[:16] not in concealed
    assert "lines left out" in concealed


def test_a_pgp_block_and_an_encrypted_one_lose_their_headers_too() -> None:
    body = "\n".join(["lQOYBGPx" * 8] * 3)
    pgp = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{body}\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----"
    assert conceal(pgp) == "[redacted: private key]"
    pem = f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,3F1C\n\n{body}\n-----END RSA PRIVATE KEY-----"
    assert conceal(pem) == "[redacted: private key]"


def test_a_service_account_loses_its_key_and_keeps_its_name() -> None:
    body = "\\n".join(["MIIEvQIBADANBgkq" * 4] * 3)
    account = (
        '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\n'
        + body
        + '\\n-----END PRIVATE KEY-----\\n", "client_email": "a@b.test"}'
    )
    concealed = conceal(account)
    assert "MIIE" not in concealed
    assert "a@b.test" in concealed


def test_a_json_web_token_is_concealed() -> None:
    token = ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmNHl0w5N"])
    assert conceal(f"cookie: session={token}; path=/") == "cookie: session=[redacted: JWT]; path=/"


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2a9d8c7b6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a",
        "id 550e8400-e29b-41d4-a716-446655440000 done",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "/home/user/.config/api_key.txt and src/token/secret_key.py",
        "token = tokenizer.encode(text, add_special_tokens=False)",
        "def login(user: str, password: str) -> Token: ...",
        "password: Optional[str] = None",
        "API_KEY=$KEY",
        "API_KEY=${OPENAI_API_KEY:-}",
        'token = os.environ["TOKEN"]',
        'api_key = os.getenv("OPENAI_API_KEY_2")',
        'api_key="<your-key>"',
        "OPENAI_API_KEY=your-api-key-1",
        "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "API_KEY=***************",
        "the sk- prefix; sk-loading-indicator-component-large",
        "apiKey: process.env.API_KEY2,",
        "password=args.password1, token=token2",
        "const password = getPassword(user1);",
        '"max_tokens": 12345678, "token_count": 99, "total_tokens": 1234567890',
        "Original token count: 12345678",
        '"next_page_token": "a8F3kD92mNb4Qz71"',
        '"password": "Enter your password"',
        'type="password" placeholder="Password123"',
        "secret: SecretStr\ntoken: Token2\nprivate_key: rsa.RSAPrivateKey",
        'if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):\n    return "private key"',
        "Bearer authentication is required; a bearer token must be sent",
        "PWD=/work/main OLDPWD=/work/2024a",
        "http://localhost:8080/@scope/package",
        "docker://alpine:3.18@sha256:abc",
        "git@github.com:owner/repo.git",
        "postgresql://USER:PASSWORD@HOST/db",
        "https://user:{password}@host and https://$USER:$PASS@host",
        "secretName: db-credentials-v2",
        'password = f"{user}-{n}1"',
        "    secret_key: ${{ secrets.KEY_1 }}",
        "password_hash = sha256(password1)",
        '"AWS::IAM::AccessKey": "62d91b17309e76c8"',
        "",
    ],
)
def test_what_is_no_secret_stays_the_same_object(text: str) -> None:
    assert conceal(text) is text
