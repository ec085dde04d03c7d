-- Every statement that the SQLite ledger makes in normal work, each under its name. The tables are explained in migrations/.
--
-- Writing happens in one transaction for many batches. A batch first reads `fence`: its epoch and token must be the stored ones and
-- its first record must follow the head. Nothing here updates a record, and records go only with their whole execution.
--
-- Reading is cut into slices that go on from the last row seen, since records never change: a slice needs no long read transaction,
-- and between two slices the event loop runs.

-- name: fence
SELECT epoch, token, coalesce((SELECT max(seq) FROM records WHERE execution = executions.id), 0)
FROM executions WHERE id = ?;

-- name: add_record
INSERT INTO records (execution, seq, kind, version, parent, at_us, body) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: find_kind
SELECT id FROM kinds WHERE name = ?;

-- name: add_kind
INSERT INTO kinds (name) VALUES (?);

-- name: add_receipt
INSERT INTO receipts (execution, task, receipt) VALUES (?, ?, ?);

-- name: add_blob
INSERT INTO blobs (address, content) VALUES (?, ?) ON CONFLICT (address) DO NOTHING;

-- name: open_suspension
INSERT INTO suspensions (execution, name, kind, body) VALUES (?, ?, ?, ?);

-- name: close_suspension
UPDATE suspensions SET answer = ? WHERE execution = ? AND name = ? AND answer IS NULL;

-- name: take_posted
DELETE FROM posted WHERE id = ? AND execution = ?;

-- name: put_snapshot
INSERT INTO snapshots (execution, seq, version, body) VALUES (?, ?, ?, ?)
ON CONFLICT (execution, seq) DO UPDATE SET version = excluded.version, body = excluded.body;

-- name: thin_snapshots
-- Besides the newest, one of each span of records is enough: however often an owner rests, they stay few.
DELETE FROM snapshots WHERE execution = ?1 AND seq < ?2 AND seq / ?3 = ?2 / ?3;

-- name: put_summary
INSERT INTO summaries (execution, seq, body) VALUES (?, ?, ?)
ON CONFLICT (execution) DO UPDATE SET seq = excluded.seq, body = excluded.body;

-- name: create_execution
INSERT INTO executions (name, kind, created_us, epoch, owner, token) VALUES (?, ?, ?, 1, ?, ?);

-- name: owner_of
SELECT id, epoch, owner, token, coalesce((SELECT max(seq) FROM records WHERE execution = executions.id), 0)
FROM executions WHERE name = ?;

-- name: take_over
UPDATE executions SET epoch = epoch + 1, owner = ?, token = ? WHERE id = ?;

-- name: release
UPDATE executions SET owner = '', token = NULL WHERE id = ? AND epoch = ? AND token = ?;

-- name: post
INSERT INTO posted (execution, kind, body, at_us) VALUES (?, ?, ?, ?);

-- name: handle
SELECT id FROM executions WHERE name = ?;

-- name: newest_names
SELECT name FROM executions ORDER BY id DESC LIMIT ?;

-- name: names_from
SELECT name FROM executions WHERE name >= ? AND name < ? ORDER BY name LIMIT ?;

-- name: rows
SELECT e.id, e.epoch, e.owner, e.token, e.name, e.kind, e.created_us,
  coalesce((SELECT max(seq) FROM records WHERE execution = e.id), 0), s.seq, s.body
FROM executions AS e LEFT JOIN summaries AS s ON s.execution = e.id
WHERE e.id < ? ORDER BY e.id DESC LIMIT ?;

-- name: row
SELECT e.id, e.epoch, e.owner, e.token, e.name, e.kind, e.created_us,
  coalesce((SELECT max(seq) FROM records WHERE execution = e.id), 0), s.seq, s.body
FROM executions AS e LEFT JOIN summaries AS s ON s.execution = e.id
WHERE e.name = ?;

-- name: kinds
SELECT id, name FROM kinds;

-- name: records
SELECT seq, kind, version, parent, at_us, body FROM records
WHERE execution = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?;

-- name: branch
-- Messages backwards from one of them. Those of other branches come with them: skipping them in one scan is several times quicker
-- than seeking each parent. The first of a branch has no parent, so it is seen only when it is asked for itself.
SELECT seq, kind, version, parent, at_us, body FROM records
WHERE execution = ?1 AND seq <= ?2 AND (parent IS NOT NULL OR seq = ?2) ORDER BY seq DESC LIMIT ?3;

-- name: snapshot
SELECT seq, version, body FROM snapshots WHERE execution = ? AND seq <= ? ORDER BY seq DESC LIMIT 1;

-- name: receipts
SELECT receipt FROM receipts WHERE execution = ? AND task = ? AND receipt > ? ORDER BY receipt LIMIT ?;

-- name: blob_size
SELECT length(content) FROM blobs WHERE address = ?;

-- name: blob
SELECT content FROM blobs WHERE address = ?;

-- name: suspensions
SELECT name, kind, body, answer FROM suspensions WHERE execution = ? ORDER BY id;

-- name: posted
SELECT id, kind, body, at_us FROM posted WHERE execution = ? ORDER BY id;

-- name: all_executions
SELECT id, name FROM executions ORDER BY id;

-- name: all_records
SELECT r.seq, coalesce(k.name, '?'), r.version, r.parent, r.at_us, r.body
FROM records AS r LEFT JOIN kinds AS k ON k.id = r.kind WHERE r.execution = ? ORDER BY r.seq;

-- name: snapshots_and_summary
SELECT 'snapshot', seq FROM snapshots WHERE execution = ?1
UNION ALL SELECT 'summary', seq FROM summaries WHERE execution = ?1;

-- name: orphans
SELECT execution, count(*) FROM records WHERE execution NOT IN (SELECT id FROM executions) GROUP BY execution;

-- name: all_blobs
SELECT address, content FROM blobs ORDER BY id;

-- name: remove_execution
DELETE FROM executions WHERE id = ?;

-- name: remove_records
DELETE FROM records WHERE execution = ?;

-- name: remove_receipts
DELETE FROM receipts WHERE execution = ?;

-- name: remove_suspensions
DELETE FROM suspensions WHERE execution = ?;

-- name: remove_posted
DELETE FROM posted WHERE execution = ?;

-- name: remove_snapshots
DELETE FROM snapshots WHERE execution = ?;

-- name: remove_summary
DELETE FROM summaries WHERE execution = ?;

-- name: all_bodies
SELECT body FROM records;

-- name: all_addresses
SELECT address FROM blobs;

-- name: remove_blob
DELETE FROM blobs WHERE address = ?;
