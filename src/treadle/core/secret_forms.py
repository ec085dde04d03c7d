"""The forms in which a known secret may turn up."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def forms_of(secret: str) -> set[str]:
    """As it is, trimmed, inside JSON, URL-encoded, and in base64: by itself and in the middle of something longer."""
    plain = {secret, secret.strip(), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    forms = plain | {_quoted(secret), _quoted(secret).replace("%20", "+")}
    data = secret.strip().encode(errors="surrogatepass")
    for encode in (b64encode, urlsafe_b64encode):
        forms.add(encode(data).decode().rstrip("="))
        forms |= {_inside(encode(b"\0" * shift + data).decode(), shift, len(data)) for shift in range(3)}
    return {form for form in forms if len(form) >= 6}


def _quoted(text: str) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode(errors="surrogatepass"))


def _inside(encoded: str, shift: int, length: int) -> str:
    """The characters that depend on the secret alone: whatever stands before and after it may change the others."""
    first = -(-shift * 8 // 6)
    last = (shift + length) * 8 // 6
    return encoded[first:last]
