"""Takes secrets out of text at the boundary where it enters, so that what a model saw and what is stored are the same (SE-01).

Known values are found in whatever form they come; others by their shape, or by the name that they are assigned to. Ordinary
code must stay as it is, or an agent could not edit it: `token = parser.next_token()` and `max_tokens=5` name no secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from .assignments import redact_assignments
from .secret_forms import forms_of

MARK = "[redacted]"
SHORTEST = 6  # characters of a known secret: anything shorter would be found by accident
_MOST_PASSES = 8

# ---- what secrets look like: (one of these must be in the text, lower case where told), expression, what is left of a match

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?!ssh|ecdsa)(?:(?:ant|proj|or|svcacct|admin)-[\w-]{8,}|[A-Za-z0-9]{20,}|(?=[A-Za-z_-]*\d)[\w-]{16,})"
    r"|AIza[\w-]{30,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"|[prs]k_(?:live|test)_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[\w-]{40,}|xai-[A-Za-z0-9]{20,}|ya29\.[\w-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*(?:\.[\w-]+)*)"
)
_TOKEN_BEGINS = (
    *("sk-", "AIza", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "AKIA", "ASIA"),
    *("_live_", "_test_", "hf_", "gsk_", "npm_", "pypi-", "xai-", "ya29.", "eyJ"),
)
_HEADER = re.compile(
    r"(?i)(authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:(?:basic|bearer|token|apikey)\s{1,4}(?=[^\s$<{%\[]{4})(?=\S{0,200}\w)"
    r"|(?=[A-Za-z._~+/=-]{0,200}\d)(?=[^\s\"',;(){}\[\]<>$]{8})))[^\s\"',;(){}\[\]<>$]+(?![\w.]*[(\[])"
)
_SCHEME = re.compile(r"(?i)(\bbearer\s{1,4})(?=[A-Za-z._~+/=-]{0,200}\d|[A-Za-z]{24})[\w.~+/=-]{8,}")
_API_KEY_HEADER = re.compile(
    r"(?i)((?:api-key|x-auth-token|private-token|access-token)[\"']?\s{0,4}[:=]\s{0,4}"
    r"(?:[\"'](?=[^\s\"']{8})|(?=[A-Za-z._~+/=-]{0,200}\d)(?=[^\s\"']{8})))[\w.~+/=-]+"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\w+/=\s\\:,.-]){20,}(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_URL = re.compile(r"(://[^\s/?#@:\"'<>]{0,200}:)(?![$<{%*]|\[redacted\]@)[^\s/@\"'<>]{1,500}(?=@)")

_Rule = tuple[tuple[str, ...], Callable[[str], str]]


def _kept(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda text: pattern.sub(rf"\1{MARK}", text)


_RULES: tuple[_Rule, ...] = (
    (("private key",), lambda text: _PRIVATE_KEY.sub(MARK, text)),
    (("authorization",), _kept(_HEADER)),
    (("bearer",), _kept(_SCHEME)),
    (("api-key", "auth-token", "private-token", "access-token"), _kept(_API_KEY_HEADER)),
    (("://",), _kept(_URL)),
    (("key", "token", "secret", "passw", "passphrase", "credential", "pwd"), redact_assignments),
)


class Redactor:
    """Replaces secrets by `[redacted]`. `secrets` are known values; those under 6 characters are not looked for.

    Idempotent: what it gives is not changed by it again.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets if len(secret) >= SHORTEST for form in forms_of(secret)}
        known = {form for form in known if form.lower() not in MARK}
        self._needles = tuple({form.lower() for form in known})
        longest_first = sorted(known, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)

    def redact(self, text: str) -> str:
        """The text without its secrets; the rest is as it was."""
        for _ in range(_MOST_PASSES):  # what was hidden by a secret beside it shows in the next
            if MARK in text:
                once = MARK.join(self._pass(piece) for piece in text.split(MARK))
            else:
                once = self._pass(text)
            if once == text:
                break
            text = once
        return text

    def _pass(self, text: str) -> str:
        low = text.lower()
        for needle in self._needles:
            if needle in low:
                text = self._known.sub(MARK, text)
                break
        for begin in _TOKEN_BEGINS:
            if begin in text:
                text = _TOKEN.sub(MARK, text)
                break
        for needles, rule in _RULES:
            for needle in needles:
                if needle in low:
                    text = rule(text)
                    break
        return text


_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_.-])(?:[a-z]*(?:api|access|secret|private|auth|signing)?key|[a-z]*token|[a-z]*secret|[a-z]*passw(?:or)?d"
    r"|passphrase|credentials?|pass|pat)(?:$|[_.-])"
)
_PATH = re.compile(
    r"(?:~|\.{1,2})?/(?:bin|dev|etc|home|mnt|opt|private|proc|root|run|srv|tmp|usr|var|Users|Volumes)\b|[~.]/"
)
_PASSWORD_OF_URL = re.compile(r"://[^\s/?#@:]*:([^\s/@]+)@")
_NO_SECRETS = frozenset(
    "true false none null disabled enabled default password secret token changeme production development".split()
)


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values of variables whose names look secret, and passwords in URLs of any; longest first. Paths are no secrets."""
    found: set[str] = set()
    for name, value in environ.items():
        if _SECRET_NAME.search(name) and not _PATH.match(value):
            found.add(value)
        if "://" in value:
            found.update(_PASSWORD_OF_URL.findall(value))
    secrets = (value for value in found if len(value) >= SHORTEST and value.lower() not in _NO_SECRETS)
    return tuple(sorted(secrets, key=lambda value: (-len(value), value)))
