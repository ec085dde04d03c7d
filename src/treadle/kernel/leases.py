"""Capability leases (FR-12), as pure rules: what act may touch is today's ceiling cut by what was granted and revoked since.

A capability is `namespace[:glob]`: `fs.write:src/**`, `process.spawn:pytest*`, `mcp.github:*`. Without a glob it is all of the namespace.
A lease is a grant or a revocation of one. Of those that match a target the last decides. A grant ends with its turn, its
step (the act that is at work) or the loop, and when it expires; a revocation, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

from treadle.core.errors import InputError
from treadle.core.lease_events import Held, Lease, LeaseScope
from treadle.core.messages import ToolCall

REQUEST = "request_permission"
MOST = 200  # leases of one loop; an older one of the same capability is replaced
LONGEST = 200  # characters of a capability
EVERYTHING = "*"
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*|\*")
_FILES = ("fs.read", "fs.write", "fs.delete")
KNOWN = (
    "fs.read",
    "fs.write",
    "fs.delete",
    "process.spawn",
    "mcp",
    "network.request",
    "external.mutation",
    EVERYTHING,
)
"""What tools of Treadle touch; a tool of one's own may name others."""
_SHELL = re.compile(r"[;&|<>`\n\r]|\$\(|\$\{")
_ANY = ("", "*", "**")


def parse(capability: str) -> tuple[str, str]:
    """(namespace, glob). InputError for one that is malformed, or whose glob leads out of the workspace."""
    namespace, _, glob = capability.partition(":")
    if not _NAMESPACE.fullmatch(namespace) or len(capability) > LONGEST:
        raise InputError(
            f"{capability[:LONGEST]!r} is no capability. Write namespace or namespace:glob, such as fs.write:src/**."
        )
    if (meant := _misspelt(namespace)) is not None:
        raise InputError(
            f"There is no capability {namespace!r}. {meant}There are {', '.join(KNOWN)} and what tools of your own name."
        )
    if any(ord(character) < 32 for character in glob) or "\\" in glob:
        raise InputError(f"The capability {capability!r} holds a character that no glob has.")
    if namespace in _FILES and (glob.startswith(("/", "~")) or ".." in glob.split("/")):
        raise InputError(f"The capability {capability!r} leads out of the workspace: a glob is relative to it.")
    return namespace, glob


@lru_cache(maxsize=256)
def _misspelt(namespace: str) -> str | None:
    """What was probably meant by one that no tool can have named; None: it may be right."""
    root = namespace.partition(".")[0]
    if namespace in KNOWN or root == "mcp":
        return None
    close = get_close_matches(namespace, KNOWN, 1, 0.8)
    if not close and root not in {name.partition(".")[0] for name in KNOWN}:
        return None
    return f"Did you mean {close[0]!r}? " if close else ""


def matches(capability: str, target: str) -> bool:
    """Whether a capability covers `kind target`. A malformed one, such as a forged record holds, covers nothing."""
    try:
        namespace, glob = parse(capability)
    except InputError:
        return False
    kind, _, rest = target.partition(" ")
    if namespace not in (EVERYTHING, kind):
        return False
    if glob in _ANY:
        return True
    if kind in _FILES and (rest == ".." or rest.startswith(("/", "../"))):
        return False
    if kind == "process.spawn" and _SHELL.search(rest):
        return False  # `pytest*` is no leave for `pytest; curl …`
    return _pattern(glob, kind in _FILES).fullmatch(rest) is not None


@lru_cache(maxsize=1024)
def _pattern(glob: str, paths: bool) -> re.Pattern[str]:
    """`*` within a name of a path, `**` over folders; elsewhere `*` is anything."""
    if not paths:
        return re.compile("".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in glob), re.DOTALL)
    text = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob):
        text += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(text, re.DOTALL)


def allowed(ceiling: Iterable[str] | None, leases: Iterable[Lease], target: str, now_us: int) -> bool:
    """Whether a target may be touched: within today's ceiling (None: there is none), and granted by the last lease that matches it."""
    if ceiling is not None and not any(matches(capability, target) for capability in ceiling):
        return False
    last = None
    for lease in leases:
        if (lease.expires_at_us is None or now_us < lease.expires_at_us) and matches(lease.capability, target):
            last = lease
    if last is None:
        return ceiling is None
    return last.op == "grant"


def within(ceiling: Iterable[str], capability: str) -> bool:
    """Whether a capability lies in a ceiling: equal to one of it, or a single target that one of it covers."""
    namespace, glob = parse(capability)
    return any(known == capability or matches(known, f"{namespace} {glob}".rstrip()) for known in ceiling)


def with_lease(leases: tuple[Lease, ...], lease: Lease) -> tuple[Lease, ...]:
    """With one more; what it replaces is gone. A revocation of everything leaves only itself."""
    kept = tuple(old for old in leases if old.capability != lease.capability and old.id != lease.id)
    return (*kept, lease)[-MOST:]


def without_scope(leases: tuple[Lease, ...], *scopes: LeaseScope) -> tuple[Lease, ...]:
    """Those that do not end now; the same tuple where none does."""
    if not any(lease.scope in scopes for lease in leases):
        return leases
    return tuple(lease for lease in leases if lease.scope not in scopes)


def initial(granted: Iterable[str]) -> tuple[Lease, ...]:
    """What the definition grants at the start, by policy."""
    return tuple(
        Lease(id=f"policy.{number}", op="grant", capability=capability, scope="loop", by="policy")
        for number, capability in enumerate(granted)
    )


def wanted(call: ToolCall, touches: Iterable[str]) -> tuple[str, ...]:
    """What a call needs leave for: what it touches, and of a command the whole of it."""
    command = call.args.get("command") if isinstance(call.args, dict) else None
    whole = [
        f"process.spawn {command.strip()}" if isinstance(command, str) and t.startswith("process.spawn ") else t
        for t in touches
    ]
    return tuple(t for t in whole if not t.startswith("external.mutation ") or len(whole) == 1)


def refusal(
    ceiling: tuple[str, ...] | None, leases: tuple[Lease, ...], call: ToolCall, touches: Iterable[str], now_us: int
) -> tuple[str, bool] | None:
    """(what no lease covers, whether somebody could grant it); None: go ahead.

    Reading files is free, unless a ceiling or a lease speaks of `fs.read`.
    """
    if ceiling is None and not leases:
        return None
    names = [lease.capability for lease in leases] + list(ceiling or ())
    reads = any(name.startswith(("fs.read", "*")) for name in names)
    for target in wanted(call, touches):
        if target.startswith("fs.read ") and not reads:
            continue
        if not allowed(ceiling, leases, target, now_us):
            grantable = ceiling is None or any(matches(capability, target) for capability in ceiling)
            return target, grantable
    return None


def refused_above(
    above: tuple[Held, ...], call: ToolCall, touches: Iterable[str], now_us: int
) -> tuple[str, bool] | None:
    """The same of a child's call, for those above it: none of them may lack what the child touches (FR-22)."""
    for held in above:
        if (found := refusal(held.ceiling, held.leases, call, touches, now_us)) is not None:
            return found[0], False
    return None


def lacking_above(above: tuple[Held, ...], capability: str) -> bool:
    """Whether one of those above lacks a capability, so that nobody may grant it to the child."""
    return any(
        held.ceiling is not None
        and not within([lease.capability for lease in held.leases if lease.op == "grant"], capability)
        for held in above
    )


def capability_of(target: str) -> str:
    """The capability that covers exactly this target."""
    kind, _, rest = target.partition(" ")
    return f"{kind}:{rest}"[:LONGEST]
