"""What the past of a repository says of its files: how often and how lately each was changed, and by commits like the task."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from .scan import start_git
from .words import task_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MOST_COMMITS = 3_000
CHURN_COMMITS = 500  # a change that many commits ago counts 1/e of one made now
SIMILAR_COMMITS = 1_000  # likewise for a commit like the task
MOST_FILES = 200  # commits of more files say nothing of any of them
MESSAGE_TERMS = 20.0  # length of a usual message
TRAILER = re.compile(r"^\s*[\w-]+-by:.*$", re.MULTILINE | re.IGNORECASE)


class Commit(NamedTuple):
    """A past commit: the terms of its message, joined by spaces, and the numbers of the files that it changed."""

    terms: str
    files: list[int]


class History(NamedTuple):
    """Commits, the newest first, and the paths that their numbers stand for."""

    paths: list[str]
    commits: list[Commit]


NO_HISTORY = History([], [])


class Past(NamedTuple):
    """What the past says of one file; each is 0 for a file that it does not know."""

    churn: float  # changes, late ones and those of few files weighing more
    similar: float  # the same over commits like the task, weighed by likeness
    age: int  # commits since the last change


def encode(history: History) -> bytes:
    """The stored form: paths as bytes, since not every name is text."""
    return msgspec.msgpack.encode(([os.fsencode(path) for path in history.paths], history.commits))


def decode(blob: bytes) -> History:
    """The history of a stored form."""
    paths, commits = msgspec.msgpack.decode(blob, type=tuple[list[bytes], list[Commit]])
    return History([os.fsdecode(path) for path in paths], commits)


def start_history(root: Path) -> Callable[[], History]:
    """Has git list the last commits below this folder, and gives a function that waits for them; none without git."""
    finish = start_git(
        root,
        *("log", f"-n{MOST_COMMITS}", "--no-merges", "--no-renames", "--no-notes", "--no-ext-diff"),
        *("--relative", "--name-only", "-z", "--format=%x1e%B%x1f"),
    )
    return lambda: _parsed(finish() or b"")


def _parsed(out: bytes) -> History:
    numbers: dict[str, int] = {}
    commits: list[Commit] = []
    for entry in out.split(b"\x1e")[1:]:
        message, _, names = entry.partition(b"\x1f")
        paths = [os.fsdecode(name) for name in names.replace(b"\n", b"\0").split(b"\0") if name]
        if not 0 < len(paths) <= MOST_FILES:
            paths = []
        words = task_terms(TRAILER.sub("", message.decode(errors="replace")))
        commits.append(Commit(" ".join(words.elements()), [numbers.setdefault(path, len(numbers)) for path in paths]))
    return History(list(numbers), commits)


def past_of(history: History, task: Mapping[str, int]) -> dict[str, Past]:
    """What each file's past says, given the terms of the task."""
    likeness = _likeness(history.commits, task)
    top = max(likeness.values(), default=0.0)
    count = len(history.paths)
    churn, similar, age = [0.0] * count, [0.0] * count, [-1] * count
    for number, commit in enumerate(history.commits):
        share = 1.0 / math.sqrt(len(commit.files) or 1)
        like = (likeness[number] / top) ** 3 * math.exp(-number / SIMILAR_COMMITS) if number in likeness else 0.0
        late = math.exp(-number / CHURN_COMMITS)
        for file in commit.files:
            churn[file] += late * share
            similar[file] += like * share
            if age[file] < 0:
                age[file] = number
    return {path: Past(churn[file], similar[file], age[file]) for file, path in enumerate(history.paths)}


def _likeness(commits: list[Commit], task: Mapping[str, int]) -> dict[int, float]:
    """BM25 of the task's terms over the messages, by the number of the commit, where it is not 0."""
    matched: dict[int, Counter[str]] = {}
    frequency: Counter[str] = Counter()
    lengths: dict[int, int] = {}
    for number, commit in enumerate(commits):
        words = commit.terms.split(" ")
        if found := task.keys() & set(words):
            matched[number] = Counter(word for word in words if word in found)
            lengths[number] = len(words)
            frequency.update(found)
    total = len(commits)
    weights = {term: math.log(1 + (total - times + 0.5) / (times + 0.5)) for term, times in frequency.items()}
    return {
        number: sum(
            weights[term] * times * 2.2 / (times + 0.6 + 0.6 * lengths[number] / MESSAGE_TERMS)
            for term, times in counts.items()
        )
        for number, counts in matched.items()
    }
