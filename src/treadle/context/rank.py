"""How likely each file is to be the one that a task changes.

A linear score over signals scaled to 0…1, its weights fitted as a softmax to 240 real commits of twelve repositories
(bench/map_recall_local.py measures the whole): words of the task in the content, in first lines of definitions and in the
path, names that the task spells as code, past commits with like messages, how often and how lately a file was changed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .index import HEAD
from .words import STOP, WORD, count_terms, task_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .history import Past
    from .index import Document, Index
    from .modality import LoadingPlan
    from .scan import Kind, ScannedFile

CONTENT, HEADS, PATH, NAMED, STEM, CODE, CHURN, LATE, SIMILAR = 2.0, 1.1, 1.2, 0.6, 0.6, 1.2, 0.9, 0.9, 1.6
K1, B = 1.2, 0.3  # BM25; a low B since a long source file is likelier to be changed, not less
COMMON = 0.5  # a term in more than this share of many files says nothing
MANY = 200  # files
LATE_COMMITS = 10  # commits after which a change is half as late
MOST_TERMS = 120  # of a long task, the rarest

KINDS: dict[Kind, float] = {
    "source": 0.0,
    "example": -2.0,
    "test": -4.5,
    "docs": -5.0,
    "setup": -4.5,
    "other": -5.0,
    "vendored": -6.0,
    "asset": -9.0,
}
SPOKEN: tuple[tuple[Kind, float, frozenset[str]], ...] = (
    ("test", 1.0, frozenset("test tests testing testsuite coverage fixture fixtures".split())),
    ("docs", 1.5, frozenset("doc docs documentation readme changelog docstring tutorial".split())),
    ("example", 1.0, frozenset("example examples sample demo benchmark benchmarks script scripts tool".split())),
    ("setup", 1.5, frozenset("build packaging dependency dependencies makefile cmake docker setup install".split())),
    ("other", 1.5, frozenset("ci workflow workflows config configuration pipeline yaml json".split())),
)
README = re.compile(r"(^|/)readme\b", re.IGNORECASE)
TOKEN = re.compile(r"`([^`\n]+)`|([\w.]+)(\(?)")
CAMEL = re.compile(r"[a-z]\d*[A-Z]")
LONGEST_TASK = 500  # terms of a task that are looked for


class Task(NamedTuple):
    """A task as what is looked for: its terms with their weights, and the names that it spells as code."""

    text: str
    terms: Counter[str]
    message_terms: Counter[str]
    code: frozenset[str]
    words: frozenset[str]


class Ranked(NamedTuple):
    """A file with its score; the higher, the likelier."""

    file: ScannedFile
    score: float


def task_of(text: str) -> Task:
    """Reads a task. Its first line counts twice."""
    once = task_terms(text)
    wanted = once + task_terms(text.strip().split("\n")[0])
    words = frozenset(word.lower().strip("_") for word in WORD.findall(text) if word.lower() not in STOP)
    return Task(text, Counter(dict(wanted.most_common(LONGEST_TASK))), once, frozenset(_spelled(text)), words)


def _spelled(text: str) -> Iterator[str]:
    """Names that a text spells as code: between backticks, called, dotted, with an underscore or a capital inside."""
    for quoted, token, called in TOKEN.findall(text):
        dotted = token.strip(".")
        named = dotted if called or "." in dotted or "_" in dotted or CAMEL.search(dotted) else quoted
        for word in WORD.findall(named):
            name = word.lower().strip("_")
            if len(name) > 2 and word.lower() not in STOP:
                yield name


def rank_files(
    files: Sequence[ScannedFile],
    task: Task,
    index: Index,
    past: Mapping[str, Past],
    changed: Mapping[str, bool],
    plan: LoadingPlan,
) -> list[Ranked]:
    """All files, the likeliest first. `changed` has the files with uncommitted changes, and whether they conflict."""
    scores = [KINDS[file.kind] for file in files]
    spoken = {kind: gain for kind, gain, words in SPOKEN if words & task.words}
    for number, file in enumerate(files):
        scores[number] += spoken.get(file.kind, 0.0)
        if plan.setup and (file.kind == "setup" or README.search(file.path)):
            scores[number] += plan.setup
        if file.path in changed:
            scores[number] += plan.conflicted if changed[file.path] else plan.changed
    source = [number for number, file in enumerate(files) if file.kind == "source"] or list(range(len(files)))
    for weight, signal in (
        *_content(files, source, task, index),
        *_paths(files, source, task),
        *_past(files, source, past),
    ):
        top = max((signal[number] for number in source if number in signal), default=0.0)
        if top > 0:
            for number, value in signal.items():
                scores[number] += weight * min(value / top, 1.0)
    order = sorted(range(len(files)), key=lambda number: (-scores[number], files[number].path))
    return [Ranked(files[number], scores[number]) for number in order]


Signal = dict[int, float]
"""A value by the number of a file; files that are missing have 0."""


def _content(files: Sequence[ScannedFile], source: list[int], task: Task, index: Index) -> list[tuple[float, Signal]]:
    holders: dict[int, list[int]] = {}
    for number, file in enumerate(files):
        if document := index.documents.get(file.path):
            holders.setdefault(document.id, []).append(number)
    counted = {number: document for number in source if (document := index.documents.get(files[number].path))}
    found = index.lookup([*task.terms, *(HEAD + term for term in task.terms), *task.code])
    documents = {document.id: document for document in index.documents.values()}

    def signal(wanted: Mapping[str, int], prefix: str) -> Signal:
        lengths = {doc: document.heads if prefix else document.length for doc, document in documents.items()}
        mean = sum(lengths[document.id] for document in counted.values()) / (len(counted) or 1) or 1.0
        return _bm25(
            {term: (times, found.get(prefix + term, [])) for term, times in wanted.items()},
            holders,
            lengths,
            mean,
            counted,
        )

    return [
        (CONTENT, signal(task.terms, "")),
        (HEADS, signal(task.terms, HEAD)),
        (CODE, signal(dict.fromkeys(task.code, 1), "")),
    ]


def _bm25(
    wanted: dict[str, tuple[int, list[tuple[int, int]]]],
    holders: dict[int, list[int]],
    lengths: dict[int, int],
    mean: float,
    counted: Mapping[int, Document],
) -> Signal:
    """BM25 by the number of the file. How rare a term is, is asked of the `counted` files alone."""
    total = len(counted)
    found: Signal = {}
    weighed: list[tuple[float, list[tuple[int, int]]]] = []
    for times, postings in wanted.values():
        frequency = sum(number in counted for doc, _ in postings for number in holders.get(doc, ()))
        if postings and not (total > MANY and frequency > COMMON * total):
            rarity = math.log(1 + (total - frequency + 0.5) / (frequency + 0.5)) if frequency else 1.0
            weighed.append((rarity * math.sqrt(min(times, 2)), postings))
    weighed.sort(key=lambda pair: -pair[0])
    for weight, postings in weighed[:MOST_TERMS]:
        for doc, count in postings:
            if doc in holders:
                value = weight * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[doc] / mean))
                for number in holders[doc]:
                    found[number] = found.get(number, 0.0) + value
    return found


def _paths(files: Sequence[ScannedFile], source: list[int], task: Task) -> list[tuple[float, Signal]]:
    if not task.terms:
        return []
    probe = re.compile("|".join(sorted(re.escape(term.rstrip("y")) for term in task.terms if len(term) > 1)) or r"(?!)")
    lowered = task.text.lower()
    parts: dict[int, Counter[str]] = {}
    named: Signal = {}
    stemmed: Signal = {}
    for number, file in enumerate(files):
        path = file.path.lower()
        if not probe.search(path):
            continue
        parts[number] = count_terms(re.sub(r"[./-]", " ", file.path))
        base = path.rsplit("/", 1)[-1]
        if path in lowered:
            named[number] = 1.0
        elif _stands_alone(base, lowered):
            named[number] = 0.8
        if base.split(".")[0] in task.words:
            stemmed[number] = 1.0
    members = set(source)
    frequency = Counter(term for number, counts in parts.items() if number in members for term in counts)
    total = len(source)
    signal: Signal = {}
    for number, counts in parts.items():
        length = counts.total()
        for term in task.terms.keys() & counts.keys():
            rarity = math.log(1 + (total - frequency[term] + 0.5) / (frequency[term] + 0.5))
            weight = rarity * math.sqrt(min(task.terms[term], 2))
            signal[number] = signal.get(number, 0.0) + weight * counts[term] * 2.2 / (counts[term] + 0.6 + 0.1 * length)
    return [(PATH, signal), (NAMED, named), (STEM, stemmed)]


def _stands_alone(name: str, text: str) -> bool:
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return True
        at = text.find(name, at + 1)
    return False


def _past(files: Sequence[ScannedFile], source: list[int], past: Mapping[str, Past]) -> list[tuple[float, Signal]]:
    known = {number: found for number, file in enumerate(files) if (found := past.get(file.path))}
    if not known:
        newest = sorted(source, key=lambda number: -files[number].mtime_ns)
        return [(LATE, {number: 1 / (1 + place / LATE_COMMITS) for place, number in enumerate(newest)})]
    return [
        (CHURN, {number: math.log(1 + 10 * found.churn) for number, found in known.items()}),
        (LATE, {number: 1 / (1 + found.age / LATE_COMMITS) for number, found in known.items()}),
        (SIMILAR, {number: found.similar for number, found in known.items()}),
    ]
