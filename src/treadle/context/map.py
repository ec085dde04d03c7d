"""The context map: what of a workspace a model should see before it plans, ranked by the task, within a token budget."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .history import History, Past, decode, encode, head_of, past_of, read_history
from .index import Index
from .modality import PLANS, Modality, modality_of
from .outline import outline
from .rank import Ranked, Task, rank_files, task_of
from .render import Candidate, Entry, render
from .scan import MOST_BYTES, run_git, scan
from .tokens import Measure, estimate

if TYPE_CHECKING:
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
) -> ContextMap:
    """Maps the files below `root` for a task. Without `cache_dir` nothing is kept for the next time.

    NotADirectoryError where `root` is no folder. A folder without git, without files or in part unreadable is no error.
    """
    if not root.is_dir():
        raise NotADirectoryError(root)
    root = root.resolve()
    modality, wanted = modality_of(task), task_of(task)
    plan = PLANS[modality]
    with ThreadPoolExecutor(max_workers=2) as aside, closing(Index(root, _cache_file(root, cache_dir))) as index:
        head = aside.submit(head_of, root)
        changed = aside.submit(_changed, root)
        found = scan(root)
        stored = index.history(head.result()) if head.result() else None
        reading = aside.submit(read_history, root) if head.result() and stored is None else None
        index.refresh(found.files)
        history = decode(stored) if stored is not None else reading.result() if reading else History([], [])
        if reading:
            index.keep_history(head.result(), encode(history))
        past: dict[str, Past] = past_of(history, wanted.message_terms)
        ranked = rank_files(found.files, wanted, index, past, changed.result(), plan)
        candidates = _candidates(root, ranked, wanted, index, budget_tokens)
        index.commit()
    rendered = render(candidates, modality, plan, budget_tokens, measure)
    return ContextMap(
        rendered.text,
        measure(rendered.text),
        modality,
        rendered.entries,
        rendered.files_left,
        rendered.definitions_left,
    )


def _candidates(root: Path, ranked: list[Ranked], task: Task, index: Index, budget_tokens: int) -> list[Candidate]:
    most = min(MOST_PARSED, FEWEST_PARSED + budget_tokens // TOKENS_A_FILE)
    parsed: list[tuple[float, list[Definition], str]] = []
    for one in ranked[:most]:
        data = _data(root, one) if one.file.kind in PARSED_KINDS and one.file.path in index.documents else b""
        definitions = index.definitions(one.file.path, data) if data else []
        parsed.append((one.score - ranked[0].score, definitions, data.decode(errors="replace")))
    outlined = outline(parsed, task)
    return [
        Candidate(
            one,
            outlined[place] if place < len(outlined) else (),
            (lambda text=parsed[place][2]: text) if place < len(parsed) and parsed[place][2] else None,
        )
        for place, one in enumerate(ranked)
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


def _changed(root: Path) -> dict[str, bool]:
    """The files with uncommitted changes, and whether git calls them unmerged."""
    out = run_git(root, "status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules")
    prefix = (run_git(root, "rev-parse", "--show-prefix") or b"\n").decode(errors="surrogateescape").rstrip("\n")
    found: dict[str, bool] = {}
    for entry in (out or b"").decode(errors="surrogateescape").split("\0"):
        state, path = entry[:2], entry[3:]
        if path.startswith(prefix):
            found[path.removeprefix(prefix)] = "U" in state or state in ("AA", "DD")
    return found


def main(arguments: list[str] | None = None) -> None:
    """Prints the map of a folder: what `treadle map` does."""
    import platformdirs

    parser = argparse.ArgumentParser(prog="python -m treadle.context.map", description=__doc__)
    parser.add_argument("--path", type=Path, default=Path())
    parser.add_argument("--task", default="")
    parser.add_argument("--task-file", type=Path)
    parser.add_argument("--budget", type=int, default=4_000)
    given = parser.parse_args(arguments)
    task = given.task_file.read_text(errors="replace") if given.task_file else given.task
    found = build_map(given.path, task, given.budget, platformdirs.user_cache_path("treadle") / "maps")
    sys.stdout.write(found.text + "\n" if found.text else "")


if __name__ == "__main__":
    main()
