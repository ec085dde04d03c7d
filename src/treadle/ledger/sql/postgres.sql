-- Every statement that the Postgres ledger makes in normal work, each under its name. What they must do is said in statements.sql.

-- name: version
SELECT version FROM treadle_schema;

-- name: fences
SELECT e.id, e.epoch, e.token, coalesce((SELECT max(seq) FROM treadle_records WHERE execution = e.id), 0)
FROM treadle_executions AS e WHERE e.id = ANY(%s) ORDER BY e.id FOR UPDATE;

-- name: add_records
INSERT INTO treadle_records (execution, seq, kind, version, parent, at_us, body)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::integer[], %s::bigint[], %s::bigint[], %s::bytea[]);

-- name: append
-- The fence, the head and the rows of one batch in one statement: all of them or none. The row stands there once for each record.
WITH fence AS (
  SELECT e.id FROM treadle_executions AS e
  WHERE e.id = %s AND e.epoch = %s AND e.token = %s
    AND coalesce((SELECT max(seq) FROM treadle_records WHERE execution = e.id), 0) = %s
  FOR UPDATE)
INSERT INTO treadle_records (execution, seq, kind, version, parent, at_us, body)
SELECT fence.id, new.* FROM fence, (VALUES
  (%s::bigint, %s::text, %s::integer, %s::bigint, %s::bigint, %s::bytea)
) AS new;

-- name: add_receipt
INSERT INTO treadle_receipts (execution, task, receipt) VALUES (%s, %s, %s);

-- name: add_blob
INSERT INTO treadle_blobs (address, content) VALUES (%s, %s) ON CONFLICT (address) DO NOTHING;

-- name: open_suspension
INSERT INTO treadle_suspensions (execution, name, kind, body) VALUES (%s, %s, %s, %s);

-- name: close_suspension
UPDATE treadle_suspensions SET answer = %s WHERE execution = %s AND name = %s AND answer IS NULL;

-- name: take_posted
DELETE FROM treadle_posted WHERE id = %s AND execution = %s;

-- name: put_snapshot
INSERT INTO treadle_snapshots (execution, seq, version, body) VALUES (%s, %s, %s, %s)
ON CONFLICT (execution, seq) DO UPDATE SET version = excluded.version, body = excluded.body;

-- name: thin_snapshots
DELETE FROM treadle_snapshots WHERE execution = %(handle)s AND seq < %(seq)s AND seq / %(span)s = %(seq)s / %(span)s;

-- name: put_summary
INSERT INTO treadle_summaries (execution, seq, body) VALUES (%s, %s, %s)
ON CONFLICT (execution) DO UPDATE SET seq = excluded.seq, body = excluded.body;

-- name: create_execution
INSERT INTO treadle_executions (name, kind, created_us, epoch, owner, token) VALUES (%s, %s, %s, 1, %s, %s)
ON CONFLICT (name) DO NOTHING RETURNING id;

-- name: owner_of
SELECT id, epoch, owner, token FROM treadle_executions WHERE name = %s FOR UPDATE;

-- name: head_and_liveness
-- A statement of its own, after the lock: one that waited for the lock would still see the owners as they were before.
SELECT coalesce((SELECT max(seq) FROM treadle_records WHERE execution = %s), 0),
  EXISTS (SELECT 1 FROM treadle_owners WHERE token = %s AND renewed_at > clock_timestamp() - %s * interval '1 second');

-- name: take_over
UPDATE treadle_executions SET epoch = epoch + 1, owner = %s, token = %s WHERE id = %s;

-- name: release
UPDATE treadle_executions SET owner = '', token = NULL WHERE id = %s AND epoch = %s AND token = %s;

-- name: renew
INSERT INTO treadle_owners (token, renewed_at) VALUES (%s, clock_timestamp())
ON CONFLICT (token) DO UPDATE SET renewed_at = clock_timestamp();

-- name: sweep_owners
DELETE FROM treadle_owners WHERE renewed_at < clock_timestamp() - interval '1 day';

-- name: resign
DELETE FROM treadle_owners WHERE token = %s;

-- name: confirm
SELECT epoch, token FROM treadle_executions WHERE id = %s;

-- name: post
INSERT INTO treadle_posted (execution, kind, body, at_us) VALUES (%s, %s, %s, %s) RETURNING id;

-- name: notify
SELECT pg_notify('treadle_posted', %s);

-- name: handle
SELECT id FROM treadle_executions WHERE name = %s;

-- name: newest_names
SELECT name FROM treadle_executions ORDER BY id DESC LIMIT %s;

-- name: names_from
SELECT name FROM treadle_executions WHERE starts_with(name, %s) ORDER BY name LIMIT %s;

-- name: rows
SELECT e.id, e.epoch, e.owner, e.token, e.name, e.kind, e.created_us,
  coalesce((SELECT max(seq) FROM treadle_records WHERE execution = e.id), 0), s.seq, s.body,
  coalesce(o.renewed_at > clock_timestamp() - %s * interval '1 second', false)
FROM treadle_executions AS e
LEFT JOIN treadle_summaries AS s ON s.execution = e.id
LEFT JOIN treadle_owners AS o ON o.token = e.token
WHERE e.id < %s ORDER BY e.id DESC LIMIT %s;

-- name: row
SELECT e.id, e.epoch, e.owner, e.token, e.name, e.kind, e.created_us,
  coalesce((SELECT max(seq) FROM treadle_records WHERE execution = e.id), 0), s.seq, s.body,
  coalesce(o.renewed_at > clock_timestamp() - %s * interval '1 second', false)
FROM treadle_executions AS e
LEFT JOIN treadle_summaries AS s ON s.execution = e.id
LEFT JOIN treadle_owners AS o ON o.token = e.token
WHERE e.name = %s;

-- name: records
SELECT seq, kind, version, parent, at_us, body FROM treadle_records
WHERE execution = %s AND seq > %s AND seq <= %s ORDER BY seq LIMIT %s;

-- name: branch
SELECT seq, kind, version, parent, at_us, body FROM treadle_records
WHERE execution = %(handle)s AND seq <= %(leaf)s AND (parent IS NOT NULL OR seq = %(leaf)s) ORDER BY seq DESC LIMIT %(limit)s;

-- name: snapshot
SELECT seq, version, body FROM treadle_snapshots WHERE execution = %s AND seq <= %s ORDER BY seq DESC LIMIT 1;

-- name: receipts
SELECT receipt FROM treadle_receipts WHERE execution = %s AND task = %s;

-- name: blob
SELECT content FROM treadle_blobs WHERE address = %s;

-- name: suspensions
SELECT name, kind, body, answer FROM treadle_suspensions WHERE execution = %s ORDER BY id;

-- name: posted
SELECT id, kind, body, at_us FROM treadle_posted WHERE execution = %s ORDER BY id;

-- name: all_executions
SELECT id, name FROM treadle_executions ORDER BY id;

-- name: snapshots_and_summary
SELECT 'snapshot', seq FROM treadle_snapshots WHERE execution = %(handle)s
UNION ALL SELECT 'summary', seq FROM treadle_summaries WHERE execution = %(handle)s;

-- name: all_blobs
SELECT address, content FROM treadle_blobs ORDER BY address;

-- name: remove_execution
DELETE FROM treadle_executions WHERE id = %s;

-- name: remove_records
DELETE FROM treadle_records WHERE execution = %s;

-- name: remove_receipts
DELETE FROM treadle_receipts WHERE execution = %s;

-- name: remove_suspensions
DELETE FROM treadle_suspensions WHERE execution = %s;

-- name: remove_posted
DELETE FROM treadle_posted WHERE execution = %s;

-- name: remove_snapshots
DELETE FROM treadle_snapshots WHERE execution = %s;

-- name: remove_summary
DELETE FROM treadle_summaries WHERE execution = %s;

-- name: lock_blobs
-- Waits for the transactions that add some; whoever adds one later finds it gone and adds it anew.
LOCK TABLE treadle_blobs IN SHARE ROW EXCLUSIVE MODE;

-- name: all_bodies
SELECT body FROM treadle_records;

-- name: all_addresses
SELECT address FROM treadle_blobs;

-- name: remove_blobs
DELETE FROM treadle_blobs WHERE address = ANY(%s);

-- name: size
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
WHERE c.relkind = 'r' AND starts_with(c.relname, 'treadle_') AND pg_table_is_visible(c.oid);

-- name: vacuum
VACUUM (ANALYZE) treadle_records, treadle_blobs, treadle_snapshots, treadle_receipts, treadle_suspensions;
