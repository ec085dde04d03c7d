"""The index knows contents by their hash, reads only what changed, and survives whatever happens to its file."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from treadle.context.index import Index
from treadle.context.scan import scan

LONG_AGO = 1_000_000_000


def write(root: Path, path: str, text: str) -> None:
    """Writes a file whose time lies far back, as if it had stood there for years."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    os.utime(root / path, (LONG_AGO, LONG_AGO))


def holders(root: Path, cache: Path | None, term: str) -> list[str]:
    """The paths whose content holds the term, after a refresh."""
    with closing(Index(root, cache)) as index:
        index.refresh(scan(root).files)
        documents = {document for document, _ in index.lookup([term]).get(term, [])}
        return [path for path, document in index.documents.items() if document.id in documents]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "work/a.py", "alpha = 1\n")
    write(tmp_path, "work/b.py", "beta = 2\n")
    return tmp_path / "work"


@pytest.mark.req("AG-05")
def test_a_second_scan_opens_no_file_that_is_as_it_was(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    assert holders(root, cache, "alpha") == ["a.py"]
    write(root, "a.py", "gamma = 1\n")  # same size, same time: a scan that read it would see
    assert holders(root, cache, "alpha") == ["a.py"]
    assert holders(root, None, "alpha") == []


def test_a_changed_file_is_read_again(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    holders(root, cache, "alpha")
    write(root, "a.py", "alphabet = 1\n")
    assert holders(root, cache, "alpha") == []
    assert holders(root, cache, "alphabet") == ["a.py"]


def test_a_file_that_has_only_just_changed_is_not_trusted_by_its_time(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    (root / "a.py").write_text("alpha = 1\n")
    ahead = (root / "a.py").stat().st_mtime_ns + 60_000_000_000
    os.utime(root / "a.py", ns=(ahead, ahead))
    holders(root, cache, "alpha")
    (root / "a.py").write_text("gamma = 1\n")
    os.utime(root / "a.py", ns=(ahead, ahead))
    assert holders(root, cache, "gamma") == ["a.py"]


@pytest.mark.req("AG-05")
def test_a_content_is_indexed_once_wherever_it_stands(root: Path, tmp_path: Path) -> None:
    write(root, "copy.py", "alpha = 1\n")
    with closing(Index(root, None)) as index:
        index.refresh(scan(root).files)
        assert index.documents["a.py"] == index.documents["copy.py"]
    assert holders(root, tmp_path / "cache.db", "alpha") == ["a.py", "copy.py"]


def test_what_is_gone_is_found_no_more(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    holders(root, cache, "alpha")
    (root / "a.py").unlink()
    assert holders(root, cache, "alpha") == []
    write(root, "a.py", "alpha = 1\n")
    assert holders(root, cache, "alpha") == ["a.py"]


def test_contents_that_no_file_has_any_more_are_given_up_when_there_are_many(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    for number in range(1_100):
        write(root, f"many/{number}.py", f"value_{number} = {number}\n")
    holders(root, cache, "alpha")
    for number in range(1_100):
        (root / f"many/{number}.py").unlink()
    assert holders(root, cache, "alpha") == ["a.py"]
    with closing(sqlite3.connect(cache)) as store:
        assert store.execute("select count(*) from docs").fetchone() == (2,)


def test_skeletons_are_kept(root: Path, tmp_path: Path) -> None:
    write(root, "c.py", "def f(): ...\n")
    for data in (b"def f(): ...\n", b"never parsed"):
        with closing(Index(root, tmp_path / "cache.db")) as index:
            index.refresh(scan(root).files)
            assert [one.name for one in index.definitions("c.py", data)] == ["f"]
            index.commit()


def test_binary_content_has_no_terms(root: Path) -> None:
    (root / "a.py").write_bytes(b"alpha\0alpha")
    assert holders(root, None, "alpha") == []


@pytest.mark.parametrize("damage", [b"no database at all, but long enough for one" * 40, b""])
def test_a_damaged_cache_is_built_anew(root: Path, tmp_path: Path, damage: bytes) -> None:
    cache = tmp_path / "cache.db"
    cache.write_bytes(damage)
    assert holders(root, cache, "alpha") == ["a.py"]
    write(root, "a.py", "gamma = 1\n")
    assert holders(root, cache, "alpha") == ["a.py"]  # it is kept again


def test_a_cache_of_another_format_is_built_anew(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    with closing(sqlite3.connect(cache)) as store:
        store.execute("pragma user_version = 999")
        store.execute("create table files (other)")
        store.commit()
    assert holders(root, cache, "alpha") == ["a.py"]


def test_a_cache_that_cannot_be_had_is_done_without(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert holders(root, tmp_path / "file" / "cache.db", "alpha") == ["a.py"]
    (tmp_path / "folder.db").mkdir()
    assert holders(root, tmp_path / "folder.db", "alpha") == ["a.py"]
