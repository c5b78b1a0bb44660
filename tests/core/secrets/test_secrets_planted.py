"""Redaction measured: on secrets of every kind, beside a maintained scanner's rules, and on text that has none."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowwater.core.secrets.redaction import conceal, secrets_in
from tests.core.secrets.planted_secrets import planted

SEEDS = range(10)
PLANTED = [planted(seed) for seed in SEEDS]
RECORDED = Path(__file__).parents[4] / "shared" / "transcripts"


@pytest.mark.parametrize("at", range(len(planted())), ids=[each.name for each in planted()])
def test_a_planted_secret_is_concealed_and_what_stands_before_it_stays(at: int) -> None:
    for seed in SEEDS:
        each = PLANTED[seed][at]
        concealed = conceal(each.text)
        assert each.secret not in concealed
        assert concealed.startswith(each.text.partition(each.secret)[0][:16])


def test_enough_was_planted() -> None:
    assert len({each.name for each in planted()}) >= 76


def test_a_scanner_finds_nothing_that_is_left(tmp_path: Path) -> None:
    """The rules of detect-secrets: whatever they find in a text is not in it any more once it was concealed."""
    scanner = pytest.importorskip("detect_secrets")
    settings = pytest.importorskip("detect_secrets.settings")

    def found(text: str) -> set[str]:
        path = tmp_path / "scanned.txt"
        path.write_text(f"{text}\n")
        secrets = scanner.SecretsCollection()
        with settings.default_settings():
            secrets.scan_file(str(path))
        return {secret.secret_value or "" for _, secret in secrets}

    scanned = [(each, found(each.text)) for each in planted()]
    assert sum(bool(values) for _, values in scanned) >= 30, "the scanner knows many of them"
    assert [
        each.name for each, values in scanned if any(value in conceal(each.text) for value in values)
    ] == []
    assert [each.name for each, _ in scanned if found(conceal(each.text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "docker run -u 1000:1000 -p 8080:80 nginx",
        "docker run --name mysql -p3306:3306 mysql:8",
        "mkdir -p build/output && mysql --version",
        "curl -u $USER:$PASSWORD https://x.example.com",
        "curl -u <user>:<password> https://x.example.com",
        "ls -lu one:two",
        'password: "input-password"',
        '{"type": "password", "label": "password", "name": "current-password"}',
        'errors = {"password": "password-too-short"}',
        "password = get_password(prompt)",
        '"password": "Bitte geben Sie ein Passwort ein"',
        "Cookie: theme=dark; lang=en",
        "the cookie: a small file that a browser keeps",
        "SKILL.md and ACCOUNT are names; SK and AC are none",
        "main.c:123:45: error: undeclared identifier",
        "10:30:12:app:started",
        "machine learning models and login pages with a password field",
        '"auth": "required"',
        '"auth": {"type": "basic"}',
        "author = somebodyelse",
        "the region is us-east-1 and the cluster cluster-us12",
        "x-api-key: your-key-here",
        "x-lowwater-key: $GATEWAY_KEY",
        "see lw:412 and lw-sessions.db",
        "define('DB_NAME', 'wordpress');",
        "echo $1$2 and $6",
        "first_pass = 'render-shadow-maps'",
        "compass=north-east-7 bypass=yes-please",
        "TEST_PASS=123456",
        "DB_PASS=${DB_PASS}",
        '{"user_pass": "user_password_field"}',
        "ansible_ssh_pass={{ vault_ssh_pass }}",
        "htpasswd -b passwordfile username password",
        "unzip -P password a.zip",
        "scp -P 2222 a.zip host:",
        "wget https://x.example.com/a2.zip -P downloads2",
        "openssl enc -d -aes-256-cbc -in a -k key2.bin",
        "openssl s_client -connect host:443 -k",
        "openssl rsa -passin pass:$PASSPHRASE",
        "client-key-data: DATA+OMITTED",
        "otpauth://totp/NAME?secret=<secret>",
        "X-Amz-Signature=<signature>",
        "Notes on Monday.Friday.afternoon",
    ],
)
def test_text_that_looks_alike_stays(text: str) -> None:
    assert conceal(text) is text


def strings_in(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


@pytest.mark.full
@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded sessions are not here")
def test_ordinary_code_and_logs_stay_as_they_are() -> None:
    """Their secrets were taken out before they were shared: whatever is found in them is none."""
    read, found = 0, 0
    for path in sorted(RECORDED.rglob("*.jsonl"))[::4]:
        for line in path.read_text(errors="replace").splitlines():
            read += len(line)
            try:
                value = json.loads(line)
            except ValueError:
                continue
            found += sum(len(secrets_in(text)) for text in strings_in(value))
    assert found <= read / 1_000_000, f"{found} in {read / 1_000_000:.0f} MB: at most one in a megabyte"
