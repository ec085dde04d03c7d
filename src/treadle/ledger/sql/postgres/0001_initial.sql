-- Version 1: the whole store. The tables are those of the SQLite store (see ../migrations/), with two differences: a kind is stored by its
-- name, and `treadle_owners` says which processes live, since many machines share no lock file. `renewed_at` is the server's time.

CREATE TABLE treadle_executions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  kind text NOT NULL,
  created_us bigint NOT NULL,
  epoch bigint NOT NULL,
  owner text NOT NULL,
  token text
);

CREATE TABLE treadle_owners (
  token text PRIMARY KEY,
  renewed_at timestamptz NOT NULL
);

CREATE TABLE treadle_records (
  execution bigint NOT NULL,
  seq bigint NOT NULL,
  kind text NOT NULL,
  version integer NOT NULL,
  parent bigint,
  at_us bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (execution, seq)
);

CREATE FUNCTION treadle_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND NOT EXISTS (SELECT 1 FROM treadle_executions WHERE id = OLD.execution) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'records are append-only';
END $$;

CREATE TRIGGER treadle_records_append_only BEFORE UPDATE OR DELETE ON treadle_records
FOR EACH ROW EXECUTE FUNCTION treadle_append_only();

CREATE TABLE treadle_receipts (
  execution bigint NOT NULL,
  task text COLLATE "C" NOT NULL,
  receipt text COLLATE "C" NOT NULL,
  PRIMARY KEY (execution, task, receipt)
);

CREATE TABLE treadle_blobs (
  address text PRIMARY KEY,
  content bytea NOT NULL
);

CREATE TABLE treadle_suspensions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  execution bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  body bytea NOT NULL,
  answer bytea,
  UNIQUE (execution, name)
);

CREATE TABLE treadle_posted (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  execution bigint NOT NULL,
  kind text NOT NULL,
  body bytea NOT NULL,
  at_us bigint NOT NULL
);

CREATE INDEX treadle_posted_by_execution ON treadle_posted (execution);

CREATE TABLE treadle_snapshots (
  execution bigint NOT NULL,
  seq bigint NOT NULL,
  version integer NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (execution, seq)
);

CREATE TABLE treadle_summaries (
  execution bigint PRIMARY KEY,
  seq bigint NOT NULL,
  body bytea NOT NULL
);
