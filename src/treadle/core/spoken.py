"""Money, time and foreign text as people read them, in one spelling everywhere."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from .messages import MapGiven

CENT, FINE = Decimal("0.01"), Decimal("0.0001")
_UNITS = (
    (86_400, 86_400, 3600, "d", "h"),
    (3600, 3600, 60, "h", "min"),
    (0, 60, 1, "min", "s"),
)
_WHITE = {"\n": " ", "\t": " "}


def money(usd: Decimal) -> str:
    """$12.34, and four decimals below a dollar: agents spend fractions of a cent."""
    if not usd:
        return "$0"
    if usd < FINE:
        return "<$0.0001"
    step = CENT if usd >= 1 else FINE
    return f"${usd.quantize(step, ROUND_HALF_UP):,}"


def duration(us: int) -> str:
    """A span of microseconds: 0.4 s, 41 s, 2 min 3 s, 1 h 5 min, 3 d 4 h."""
    seconds = us / 1_000_000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for least, unit, part, name, part_name in _UNITS:
        if whole >= least:
            rest = whole % unit // part
            return f"{whole // unit} {name}" + (f" {rest} {part_name}" if rest else "")
    raise AssertionError("the last unit takes everything")


def count(number: int, noun: str) -> str:
    """1 round, 2 rounds."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def plain(text: str) -> str:
    """Foreign text without control characters, so that it cannot steer a terminal; newlines and tabs stay."""
    return "".join(c for c in text if c in _WHITE or (c.isprintable() and c not in "\u2028\u2029"))


def one_line(text: str, limit: int = 200) -> str:
    """Foreign text on one line of at most `limit` characters."""
    flat = " ".join(plain(text[: 4 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def gist(text: str, limit: int = 200) -> str:
    """Foreign text on one line of at most `limit` characters; of an output of several lines rather the end, with how it begins."""
    text = text.strip()
    if len(text) <= limit or "\n" not in text:
        return one_line(text, limit)
    head = one_line(text.partition("\n")[0], limit // 3).removesuffix("…")
    tail = " ".join(plain(text[-4 * limit :]).split())
    room = limit - len(head) - 3
    return f"{head} … {tail[-room:].lstrip()}" if len(tail) > room else one_line(text, limit)


def last_line(text: str, limit: int = 200) -> str:
    """The last line of foreign text that has anything on it, its end kept."""
    lines = [line for line in plain(text[-4 * limit :]).splitlines() if line.strip()]
    line = " ".join(lines[-1].split()) if lines else ""
    return line if len(line) <= limit else "…" + line[1 - limit :]


def map_words(given: MapGiven) -> str:
    """What the model was shown of the workspace, or why nothing."""
    if given.none:
        return f"none, {one_line(given.none, 160)}"
    left = f"{count(given.files, 'file')}, {given.files_left:,} left out"
    return f"{given.tokens:,} of {given.budget:,} tokens, {given.modality}: {left}, in {duration(given.us)}"
