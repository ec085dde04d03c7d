"""Secrets are taken out of text, and nothing else is."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

import treadle
from treadle.core.redaction import MARK, Redactor, secrets_of

PLAIN = Redactor()
B64 = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


# ---- by shape


@pytest.mark.req("SE-01")
@pytest.mark.parametrize(
    "secret",
    [
        "sk-" + "aB3" * 16,
        "sk-abcdefghijklmnopqrstuvwx",
        "sk-ant-api03-Abc_def-123",
        "sk-proj-abcdefgh_ijkl",
        "AIza" + "Sy0-_" * 7,
        "ghp_" + "a1B2" * 9,
        "ghs_" + "a1B2" * 9,
        "github_pat_" + "11ABC_" * 8,
        "glpat-abcdefghij1234567890",
        "xoxb-1234567890-abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "hf_" + "abcDEF12" * 4,
        "sk_live_" + "a1" * 12,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.s5-abc_DEF",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/IBAAKCAQEA0Z3VS5==\nmore/lines+of/it\n-----END RSA PRIVATE KEY-----",
        r"-----BEGIN PRIVATE KEY-----\nMIIEow+/IBAAKCAQEA0Z3VS5\nmore\n-----END PRIVATE KEY-----\n".removesuffix(r"\n"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "x = '{}'", "see {}, and more", '{{"value":"{}"}}', "({})", "{}\n"])
def test_a_secret_is_known_by_its_shape_wherever_it_stands(secret, around):
    assert PLAIN.redact(around.format(secret)) == around.format(MARK)


@pytest.mark.req("SE-01")
def test_a_private_key_that_was_cut_off_goes_as_well():
    assert PLAIN.redact("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAA\nb3Blbn") == MARK


@pytest.mark.req("SE-01")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdef", f"Authorization: Bearer {MARK}"),
        ("authorization: basic dXNlcjpwYXNz", f"authorization: basic {MARK}"),
        ("AUTHORIZATION: BEARER XYZW1234", f"AUTHORIZATION: BEARER {MARK}"),
        ('{"Authorization": "token abcd1234"}', f'{{"Authorization": "token {MARK}"}}'),
        ("Proxy-Authorization: Basic dXNlcjpwYXNz\nHost: x", f"Proxy-Authorization: Basic {MARK}\nHost: x"),
        ("Authorization: 0123abcd4567", f"Authorization: {MARK}"),
        ("curl -H 'Authorization: Bearer a.b-c_1' https://x", f"curl -H 'Authorization: Bearer {MARK}' https://x"),
        ("got Bearer abc12345xyz back", f"got Bearer {MARK} back"),
        ("x-api-key: abcd1234", f"x-api-key: {MARK}"),
        ('"X-Api-Key": "abcdefghij"', f'"X-Api-Key": "{MARK}"'),
        ("postgres://user:pa55@host:5432/db", f"postgres://user:{MARK}@host:5432/db"),
        ("https://u:p%40ss@h/x?y#z", f"https://u:{MARK}@h/x?y#z"),
        ("redis://:pass1@h", f"redis://:{MARK}@h"),
    ],
)
def test_headers_and_urls_lose_the_secret_alone(text, expected):
    assert PLAIN.redact(text) == expected


# ---- by name


@pytest.mark.req("SE-01")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("OPENAI_API_KEY=abcdef", "abcdef"),
        ("export FOO_TOKEN='abc123'", "abc123"),
        ('MY_KEY="two words"', "two words"),
        ("PASSWORD=hunter2", "hunter2"),
        ("password=hunter2", "hunter2"),
        ("Password=letmein", "letmein"),
        ("API_KEY=secretkeyvalue", "secretkeyvalue"),
        ('{"password": "password123"}', "password123"),
        ("DB_PASSWORD=p@ss(w0rd)[x]", "p@ss(w0rd)[x]"),
        ("db_password=s3cret!", "s3cret!"),
        ("FOO_PASSWORD=abc # comment", "abc"),
        ("A=1\nB_SECRET=xyzzy\nC=2", "xyzzy"),
        ("A=1\r\nB_SECRET=xyzzy\r\nC=2", "xyzzy"),
        ("GITHUB_TOKEN=xyz1 ./run.sh", "xyz1"),
        ("docker run -e API_KEY=abcdef image", "abcdef"),
        ("curl 'https://x/y?api_key=abc123&z=1'", "abc123"),
        ("tool --password=hunter2 run", "hunter2"),
        ("tool --token=abcd run", "abcd"),
        ('{"api_key": "abc123def", "n": 1}', "abc123def"),
        ('{"password": "hunter2"}', "hunter2"),
        ("password: hunter22\nuser: x", "hunter22"),
        (f"aws_secret_access_key = {B64}", B64),
        (f"AWS_SECRET_ACCESS_KEY={B64}", B64),
        (f"client_secret: '{B64}'", B64),
        ("  - POSTGRES_PASSWORD=example", "example"),
        ("set API_TOKEN=abc", "abc"),
    ],
)
def test_the_value_given_to_a_secret_name_goes_and_nothing_else(text, value):
    assert PLAIN.redact(text) == text.replace(value, MARK)


@pytest.mark.req("SE-01")
@pytest.mark.parametrize(
    "text",
    [
        "token = parser.next_token()",
        "max_tokens=5",
        "max_tokens = 4096",
        "MAX_TOKENS=4096",
        "token=token",
        "    password=password\n)",
        "    api_key=api_key,",
        "api_key=os.environ['X']",
        "API_KEY=os.environ['X']",
        'API_KEY = "API_KEY"',
        "API_KEY=$OTHER",
        "API_KEY=${OTHER:-}",
        "API_KEY=<your key>",
        "API_KEY=your-key-here",
        "PASSWORD=$(cat file)",
        "PASSWORD=",
        "password = getpass.getpass()",
        "password: Optional[str] = None",
        "api_key: str | None = None",
        "token: str = ''",
        "primary_key=True",
        "sort_key=lambda x: x",
        'cache_key=f"user:{id}"',
        "key=value",
        "PWD=/home/somebody/1",
        "def f(token=None, key=3):",
        "if token == 'abc12345678':",
        "private_key: Ed25519PrivateKey,",
        "RSAPrivateKey = rfc3447.RSAPrivateKey",
        "credentials = base64.b64encode(x)",
        "self._key = key",
        "next_token=response['NextToken']",
        "the token: a short word",
        "Authorization: required",
        "headers['Authorization'] = f'Bearer {token}'",
        "{'Authorization': 'Bearer ' + token}",
        "bearer authentication is used; a Bearer token",
        "'authorization: basic ...' header",
        "x-api-key: <key>",
        "sk-learn-contrib and sk-fading-circle-item",
        "task-1234567890-abcdefghijk disk-1234567890abcdef00",
        "sk-ecdsa-sha2-nistp256@openssh.com",
        "https://example.com:8080/a@b and http://x/y:z and git@github.com:a/b.git",
        "f'postgres://{user}:{password}@{host}'",
        "if '-----BEGIN PRIVATE KEY-----' in text: return 1",
        "eyJ is how it begins",
        "for key, value in items.items():",
    ],
)
def test_ordinary_code_and_prose_stay_as_they_are(text):
    assert Redactor(["a-known-secret"]).redact(text) == text


def test_this_packages_own_source_stays_as_it_is():
    """Some 100,000 characters of code about keys, tokens and secrets."""
    for file in Path(treadle.__file__).parent.rglob("*.py"):
        text = file.read_text()
        assert PLAIN.redact(text) == text, file


# ---- known values

SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=24).filter(
    lambda secret: secret.lower() not in MARK
)
AROUND = st.text(st.characters(codec="utf-8"), max_size=30)


@pytest.mark.req("SE-01")
@given(secret=SECRETS, before=AROUND, after=AROUND, upper=st.booleans())
def test_a_known_value_never_survives_in_any_case(secret, before, after, upper):
    text = before + (secret.upper() if upper else secret) + after
    shown = Redactor([secret]).redact(text)
    assert all(secret.lower() not in piece.lower() for piece in shown.split(MARK))
    assert MARK in shown


@pytest.mark.req("SE-01")
@given(secret=SECRETS.filter(lambda secret: len(secret) > 8), before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_a_known_value_never_survives_in_base64_or_a_url_or_json(secret, before, after):
    redactor = Redactor([secret])
    for encode in (b64encode, urlsafe_b64encode):
        assert MARK in redactor.redact(encode(secret.encode()).decode())
        assert MARK in redactor.redact(encode(before + secret.encode() + after).decode())
    for encoded in (quote(secret, safe=""), quote_plus(secret), quote(secret, safe="").lower(), json.dumps(secret)):
        assert MARK in redactor.redact(f"x={encoded}&y")


@pytest.mark.req("SE-01")
def test_the_rest_of_a_text_with_known_values_is_kept():
    redactor = Redactor(["correct horse", "battery", "short", "tiny"])
    assert redactor.redact("a Correct Horse, a battery and tiny") == f"a {MARK}, a {MARK} and tiny"


def test_a_secret_that_holds_another_goes_whole():
    assert Redactor(["abcdef", "xxabcdefxx"]).redact("<xxabcdefxx abcdef>") == f"<{MARK} {MARK}>"


SNIPPETS = (
    f"{MARK} [ ] redacted = : ' \" KEY _KEY= PASSWORD= password: token abc123 sk- sk-ant- ghp_ eyJ . - Bearer Authorization: "
    "://u:p@ @ xxxxxxxxxxxxxxxxxxxx a1a1a1a1a1a1a1a1a1a1"
)
PIECES = st.sampled_from([*SNIPPETS.split(), " ", "\n", "-----BEGIN PRIVATE KEY-----"])


@pytest.mark.req("SE-01")
@given(st.lists(PIECES, max_size=12).map("".join), st.lists(SECRETS, max_size=3))
def test_redacting_twice_is_redacting_once(text, secrets):
    redactor = Redactor([*secrets, "d]abc1", "redacted"])
    once = redactor.redact(text)
    assert redactor.redact(once) == once


@pytest.mark.req("SE-01")
def test_what_one_secret_hid_of_another_goes_in_the_same_call():
    """With the token gone, the rest stands at the beginning of a line."""
    assert PLAIN.redact("ghp_" + "a1B2" * 9 + " password=letmein") == f"{MARK} password={MARK}"


def test_what_was_put_in_is_never_taken_for_text():
    assert Redactor(["qwerty1", "d]abc1x"]).redact("qwerty1abc1x") == f"{MARK}abc1x"


@given(st.text(), st.lists(st.text(max_size=12), max_size=3))
def test_any_text_is_taken(text, secrets):
    redactor = Redactor(secrets)
    once = redactor.redact(text)
    assert redactor.redact(once) == once


@pytest.mark.req("SE-03")
@pytest.mark.parametrize(
    "piece",
    [
        "a_key=",
        'a_key="',
        "authorization: ",
        "://a:",
        "bearer ",
        "sk-",
        "eyJaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "api-key: ",
        "A_TOKEN=\n",
        "password",
        "key\t",
        "İ",
        "a" * 64,
        "-" * 64,
    ],
)
def test_hostile_text_does_not_hang(piece):
    """Some of these took minutes with a careless expression."""
    PLAIN.redact(piece * (60_000 // len(piece)))


# ---- the environment


@pytest.mark.req("SE-01")
def test_secrets_of_an_environment_are_the_values_of_secret_names():
    environ = {
        "OPENAI_API_KEY": "the-openai-key",
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "GITHUB_TOKEN": "the-github-token",
        "db_password": "the-db-password",
        "MY_SECRET_BASE": "the-base",
        "GH_PAT": "the-pat",
        "DATABASE_URL": "postgres://u:url-password@h/db",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/x/key.json",
        "SSH_AUTH_SOCK": "/tmp/agent.1",
        "PWD": "/home/somebody/work",
        "TOKENIZERS_PARALLELISM": "disabled",
        "MAX_TOKENS": "1234567",
        "KEYBOARD": "pc105-keys",
        "SHORT_KEY": "abc",
        "FEATURE_TOKEN": "disabled",
        "PATH": "/usr/bin:/bin",
    }
    assert set(secrets_of(environ)) == {
        "the-openai-key",
        "AKIAIOSFODNN7EXAMPLE",
        "the-github-token",
        "the-db-password",
        "the-base",
        "the-pat",
        "url-password",
    }


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=20), max_size=5))
def test_secrets_of_any_environment_can_be_redacted(environ):
    secrets = secrets_of(environ)
    assert list(secrets) == sorted(secrets, key=lambda value: (-len(value), value))
    Redactor(secrets).redact(str(environ))
