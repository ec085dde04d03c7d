"""Takes secrets out of text at the boundary where it enters, so that what a model saw and what is stored are the same (SE-01).

Known values are found in whatever form they come; others by their shape, or by the name that they are assigned to. Ordinary
code must stay as it is, or an agent could not edit it: `token = parser.next_token()` and `max_tokens=5` name no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from .assignments import redact_assignments
from .secret_forms import forms_of

MARK = "[redacted]"
_KEEPING = rf"\1{MARK}"
SHORTEST = 6  # characters of a known secret: anything shorter would be found by accident
CERTAIN = 12  # characters from which a known secret is no word that code has by accident
_MOST_PASSES = 8

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?!ssh|ecdsa)(?:(?:ant|proj|or|svcacct|admin)-[\w-]{8,}|[A-Za-z0-9]{20,}|(?=[A-Za-z_-]{0,64}\d)[\w-]{16,})"
    r"|AIza[\w-]{30,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"|[prs]k_(?:live|test)_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[\w-]{40,}|xai-[A-Za-z0-9]{20,}|ya29\.[\w-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*(?:\.[\w-]+)*)"
)
# Cheap to look for: what a token has after its separator, or its beginning where it has none.
_TOKEN_LIKELY = re.compile(r"[-_](?<=sk-|h[opsur]_|at[_-]|pp-|ve_|st_|hf_|sk_|pm_|pi-|ai-|x[a-z]-)[A-Za-z0-9_-]{8}")
_HEADER = re.compile(
    r"(?i)(authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:(?:basic|bearer|token|apikey)\s{1,4}(?=[^\s$<{%\[]{4})(?=\S{0,200}\w)"
    r"|(?=[A-Za-z._~+/=-]{0,64}\d)(?=[^\s\"',;(){}\[\]<>$]{8})))[^\s\"',;(){}\[\]<>$]+(?![\w.]*[(\[])"
)
_SCHEME = re.compile(r"(?i)(\bbearer\s{1,4})(?=[A-Za-z._~+/=-]{0,64}\d|[A-Za-z]{24})[\w.~+/=-]{8,}")
_KEY_HEADER = re.compile(
    r"(?i)((?:api-key|x-auth-token|private-token|access-token)[\"']?\s{0,4}[:=]\s{0,4}"
    r"(?:[\"'](?=[^\s\"']{8})|(?=[A-Za-z._~+/=-]{0,64}\d)(?=[^\s\"']{8})))[\w.~+/=-]+"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\w+/=\s\\:,.-]){20,}(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_URL = re.compile(r"(://[^\s/?#@:\"'<>]{0,200}:)(?![$<{%*]|\[redacted\]@)[^\s/@\"'<>]{1,500}(?=@)")


class Redactor:
    """Replaces secrets by `[redacted]`. `secrets` are known values; those under 6 characters are not looked for.

    Idempotent: what it gives is not changed by it again.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets if len(secret) >= SHORTEST for form in forms_of(secret)}
        longest_first = sorted(
            (form for form in known if form.lower() not in MARK), key=lambda form: (-len(form), form)
        )
        self._known = tuple((form.lower(), re.compile(re.escape(form), re.IGNORECASE)) for form in longest_first)

    def redact(self, text: str) -> str:
        """The text without its secrets; the rest is as it was."""
        for _ in range(_MOST_PASSES):  # what was hidden by a secret beside it shows in the next
            once = MARK.join(map(self._pass, text.split(MARK))) if MARK in text else self._pass(text)
            if once == text:
                break
            text = once
        return text

    def redact_known(self, text: str) -> str:
        """The text without known values alone, for what is run or written as it stands: a shape may be an example in a test, and
        a short value (`postgres`) a word.
        """
        low = text.lower()
        for needle, known in self._known:
            if len(needle) >= CERTAIN and needle in low:
                text = MARK.join(known.sub(MARK, piece) for piece in text.split(MARK))
                low = text.lower()
        return text

    def _pass(self, text: str) -> str:
        low = text.lower()
        for needle, known in self._known:
            if needle in low:
                text = MARK.join(known.sub(MARK, piece) for piece in text.split(MARK))
                low = text.lower()
        if (
            (("-" in text or "_" in text) and _TOKEN_LIKELY.search(text))
            or "eyJ" in text
            or "AIza" in text
            or "AKIA" in text
            or "ASIA" in text
            or "ya29." in text
        ):
            text = _TOKEN.sub(MARK, text)
        if "://" in low:
            text = _URL.sub(_KEEPING, text)
        if "authorization" in low:
            text = _HEADER.sub(_KEEPING, text)
        if "bearer" in low:
            text = _SCHEME.sub(_KEEPING, text)
        if (
            "key" in low
            or "token" in low
            or "secret" in low
            or "passw" in low
            or "passphrase" in low
            or "credential" in low
        ):
            text = _named(text)
        return text


def redact_json(text: str, redact: Callable[[str], str]) -> str:
    """JSON text without its secrets, and still JSON: where a secret's place does not allow that, strings are cleaned one by one."""
    clean = redact(text)
    if clean == text:
        return text
    try:
        json.loads(clean)
    except ValueError:
        return json.dumps(cleaned(json.loads(text), redact), ensure_ascii=False, separators=(",", ":"))
    return clean


def cleaned(value: Any, redact: Callable[[str], str]) -> Any:
    """A JSON value with each of its texts cleaned, keys as well."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [cleaned(item, redact) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {redact(key): cleaned(item, redact) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _named(text: str) -> str:
    """What its name or its heading gives away."""
    low = text.lower()
    if "private key" in low:
        text = _PRIVATE_KEY.sub(MARK, text)
    if "api-key" in low or "-token" in low:
        text = _KEY_HEADER.sub(_KEEPING, text)
    return redact_assignments(text)


_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_.-])(?:(?:api|access|secret|private|auth|signing|encryption|master)?key|[a-z]*token|[a-z]*secret|[a-z]*passw(?:or)?d"
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
