-- Version 1: the whole store.
--
-- An EXECUTION is one durable run. Its `id` is the handle that the other tables use, because the `name` that people see is long and
-- would be repeated in every row; a handle is never given twice. `epoch` goes up with every new owner and fences the older ones.
-- `owner` is for people; `token` names the lock file of the process that owns it, and is null when nobody does.
--
-- RECORDS are the truth: an event each, numbered by `seq` from 1 without holes, and never changed. They may be removed only after
-- their execution has been, so that a whole execution can be dropped and no single event can. A message is a record whose `parent`
-- is the `seq` of the message before it. `kind` points into KINDS, which saves a dozen bytes a record. `at_us` is wall time in
-- microseconds. A table with rowid and a unique index: rows are appended, so pages are full; WITHOUT ROWID would keep long bodies
-- in overflow pages and take three times the space.
--
-- RECEIPTS prove charges that were accounted for. BLOBS hold large outputs under the digest of their content. SUSPENSIONS are durable
-- waits; `answer` is null while one is open. POSTED holds what somebody else asks of the owner; a row goes when a batch has taken it
-- into the records. SNAPSHOTS are folded state and only save time. SUMMARIES are what a listing shows.

CREATE TABLE kinds (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE executions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  owner TEXT NOT NULL,
  token TEXT
);

CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  execution INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  version INTEGER NOT NULL,
  parent INTEGER,
  at_us INTEGER NOT NULL,
  body BLOB NOT NULL
);

CREATE UNIQUE INDEX records_by_seq ON records (execution, seq);

CREATE TRIGGER records_are_not_changed BEFORE UPDATE ON records
BEGIN
  SELECT raise(ABORT, 'records are append-only');
END;

CREATE TRIGGER records_are_not_removed BEFORE DELETE ON records
WHEN EXISTS (SELECT 1 FROM executions WHERE id = OLD.execution)
BEGIN
  SELECT raise(ABORT, 'records are append-only');
END;

CREATE TABLE receipts (
  execution INTEGER NOT NULL,
  task TEXT NOT NULL,
  receipt TEXT NOT NULL,
  PRIMARY KEY (execution, task, receipt)
) WITHOUT ROWID;

CREATE TABLE blobs (
  id INTEGER PRIMARY KEY,
  address TEXT NOT NULL UNIQUE,
  content BLOB NOT NULL
);

CREATE TABLE suspensions (
  id INTEGER PRIMARY KEY,
  execution INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  body BLOB NOT NULL,
  answer BLOB,
  UNIQUE (execution, name)
);

CREATE TABLE posted (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  execution INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body BLOB NOT NULL,
  at_us INTEGER NOT NULL
);

CREATE INDEX posted_by_execution ON posted (execution);

CREATE TABLE snapshots (
  execution INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (execution, seq)
);

CREATE TABLE summaries (
  execution INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  body BLOB NOT NULL
);
