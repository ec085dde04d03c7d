"""Who counts as a living owner: whoever holds the lock of its own file, and nobody else."""

import threading
from pathlib import Path

import pytest

from treadle.ledger.owners import Owners


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


def test_nothing_is_made_before_something_is_owned(store):
    owners = Owners(store)
    assert not owners.folder.exists()
    assert not Owners(store).alive(owners.token)
    owners.release()


def test_an_owner_is_alive_from_hold_to_release(store):
    owners, asker = Owners(store), Owners(store)
    assert owners.hold() == owners.hold() == owners.token
    assert asker.alive(owners.token)
    assert asker.alive(owners.token)
    owners.release()
    assert not asker.alive(owners.token)
    assert not owners.folder.exists()


def test_a_file_that_nobody_holds_is_dead_and_the_next_owner_sweeps_it(store):
    owners, next_one = Owners(store), Owners(store)
    owners.folder.mkdir()
    (owners.folder / "0123456789abcdef").touch()
    assert not owners.alive("0123456789abcdef")
    next_one.hold()
    assert [path.name for path in owners.folder.iterdir()] == [next_one.token]
    next_one.release()


def test_sweeping_spares_the_living(store):
    first, second = Owners(store), Owners(store)
    first.hold()
    second.hold()
    assert first.alive(second.token)
    assert second.alive(first.token)
    first.release()
    assert second.folder.exists()
    second.release()


@pytest.mark.req("TC-26")
def test_owners_that_come_and_go_and_sweep_never_take_a_living_one_for_dead(store):
    wrong = []

    def come_and_go():
        asker = Owners(store)
        for _ in range(40):
            owners = Owners(store)
            token = owners.hold()
            wrong.extend(token for _ in range(3) if not asker.alive(token))
            owners.release()

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_place_where_no_lock_file_can_be_made_is_an_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        Owners(tmp_path / "gone" / "store.db").hold()
