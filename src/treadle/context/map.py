"""The context map: what of a workspace a model should see before it plans, ranked by the task, within a token budget."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from treadle.core.spoken import count

from .history import NO_HISTORY, decode, encode, past_of, start_history
from .index import Index
from .modality import PLANS, Modality, modality_of
from .outline import outline
from .rank import Ranked, Task, rank_files, task_of
from .render import Candidate, Entry, render
from .scan import MOST_BYTES, git_paths, scan, start_git
from .tokens import Measure, estimate

if TYPE_CHECKING:
    from pathlib import Path

    from .modality import LoadingPlan
    from .skeleton import Definition

TOKENS_A_FILE = 64  # budget for which one more file is parsed
FEWEST_PARSED, MOST_PARSED = 24, 400
PARSED_KINDS = ("source", "test", "example", "docs", "setup")


class ContextMap(NamedTuple):
    """A map. `tokens` is what `text` was measured as, never more than the budget."""

    text: str
    tokens: int
    modality: Modality
    entries: tuple[Entry, ...]
    files_left: int
    definitions_left: int


def build_map(
    root: Path,
    task: str,
    budget_tokens: int,
    cache_dir: Path | None = None,
    *,
    measure: Measure = estimate,
    loaders: tuple[str, ...] = (),
) -> ContextMap:
    """Maps the files below `root` for a task. Without `cache_dir` nothing is kept for the next time.

    `loaders` are the tools with which the reader may load what was left out: the last line names them.

    NotADirectoryError where `root` is no folder. A folder without git, without files or in part unreadable is no error.
    """
    if not root.is_dir():
        raise NotADirectoryError(root)
    root = root.resolve()
    wanted, modality = task_of(task), modality_of(task)
    plan = PLANS[modality]
    try:
        candidates = _ranked(root, wanted, plan, budget_tokens, _cache_file(root, cache_dir))
    except sqlite3.DatabaseError:  # another process holds the cache, the disk is full, or the file has been damaged
        candidates = _ranked(root, wanted, plan, budget_tokens, None)
    rendered = render(candidates, modality, plan, budget_tokens, measure, loaders)
    return ContextMap(
        rendered.text,
        measure(rendered.text),
        modality,
        rendered.entries,
        rendered.files_left,
        rendered.definitions_left,
    )


def why_not(root: Path, fewest: int, most: int) -> str:
    """Why a workspace is not worth a map that nobody asked for; empty where it is."""
    paths = git_paths(root)
    if paths is None:
        return "no git repository"
    if len(paths) < fewest:
        return f"only {count(len(paths), 'file')}: list_dir shows as much"
    return f"{len(paths):,} files: name a budget to map so many" if len(paths) > most else ""


def _ranked(root: Path, task: Task, plan: LoadingPlan, budget_tokens: int, cache: Path | None) -> list[Candidate]:
    place = start_git(root, "rev-parse", "--show-prefix", "HEAD")
    status = start_git(
        root, "status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules"
    )
    with closing(Index(root, cache)) as index:
        prefix, _, commit = os.fsdecode(place() or b"\n").strip("\n").rpartition("\n")
        stored = index.history(commit)
        reading = start_history(root) if commit and stored is None else None
        files = scan(root).files
        index.refresh(files)
        history = reading() if reading else decode(stored) if stored else NO_HISTORY
        past = past_of(history, task.message_terms)
        ranked = rank_files(files, task, index, past, _changed(status() or b"", prefix), plan)
        candidates = _candidates(root, ranked, task, index, budget_tokens)
        if reading:
            index.keep_history(commit, encode(history))
        index.commit()
    return candidates


def _candidates(root: Path, ranked: list[Ranked], task: Task, index: Index, budget_tokens: int) -> list[Candidate]:
    most = min(MOST_PARSED, FEWEST_PARSED + budget_tokens // TOKENS_A_FILE)
    parsed: list[tuple[float, list[Definition], str]] = []
    for one in ranked[:most]:
        data = _data(root, one) if one.file.kind in PARSED_KINDS and one.file.path in index.documents else b""
        definitions = index.definitions(one.file.path, data) if data else []
        parsed.append((one.score - ranked[0].score, definitions, data.decode(errors="replace")))
    outlined = outline(parsed, task)
    texts = [text for _, _, text in parsed]
    return [
        *map(Candidate, ranked, outlined, texts),
        *(Candidate(one, (), "") for one in ranked[most:]),
    ]


def _data(root: Path, one: Ranked) -> bytes:
    try:
        data = (root / one.file.path).read_bytes()
    except OSError:
        return b""
    return b"" if len(data) > MOST_BYTES or b"\0" in data[:8192] else data


def _cache_file(root: Path, cache_dir: Path | None) -> Path | None:
    name = blake2b(bytes(root), digest_size=16).hexdigest()
    return cache_dir / f"{name}.db" if cache_dir else None


def _changed(status: bytes, prefix: str) -> dict[str, bool]:
    """The files with uncommitted changes, and whether git calls them unmerged."""
    return {
        entry[3:].removeprefix(prefix): "U" in entry[:2] or entry[:2] in ("AA", "DD")
        for entry in os.fsdecode(status).split("\0")
        if entry[3:].startswith(prefix)
    }
