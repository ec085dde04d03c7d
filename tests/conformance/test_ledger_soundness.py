"""`verify` finds what is wrong and is silent about what is right."""

import pytest

from conformance.ledger_kit import commit, record, records, started
from treadle.core.digests import blob_address
from treadle.ports.ledger import Batch, Snapshot, Summary

pytestmark = pytest.mark.anyio


async def test_a_sound_store_has_nothing_to_report(ledger):
    own = await started(ledger, count=30)
    blob = b"content"
    batch = Batch(own, [], blobs=[(blob_address(blob), blob)], snapshot=Snapshot(30, 1, b""), summary=Summary(30, b""))
    await commit(ledger, batch)
    await started(ledger, "run-2")
    assert await ledger.verify() == []


@pytest.mark.parametrize(
    ("bad", "finding"),
    [
        (record(3)._replace(body=b"{"), "run-1: record 3: "),
        (record(3)._replace(kind="not.known"), "run-1: record 3: Record of kind 'not.known'"),
        (record(3)._replace(version=99), "run-1: record 3: Record of kind 'prompted', version 99"),
        (record(3, parent=3), "run-1: record 3: its parent 3 is not there"),
        (record(3, parent=0), "run-1: record 3: its parent 0 is not there"),
    ],
)
async def test_a_record_that_cannot_be_used_is_named(ledger, bad, finding):
    own = await started(ledger, count=2)
    await commit(ledger, Batch(own, [bad, record(4)]))
    (line,) = await ledger.verify()
    assert line.startswith(finding)


async def test_a_blob_that_was_altered_is_named(ledger):
    own = await started(ledger)
    address = blob_address(b"as it was")
    await commit(ledger, Batch(own, [], blobs=[(address, b"as it is")]))
    assert await ledger.verify() == [f"blob {address}: the content is not what was stored"]


async def test_very_many_findings_are_counted_and_not_all_listed(ledger):
    own = await started(ledger)
    await commit(ledger, Batch(own, [one._replace(body=b"") for one in records(1, 300)]))
    lines = await ledger.verify()
    assert len(lines) == 21
    assert lines[-1] == "run-1: 280 more findings"
