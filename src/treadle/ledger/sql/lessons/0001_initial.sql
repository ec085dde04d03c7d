-- What loops have taught. One row a lesson; `n` is its place in the full-text index, which follows the table by triggers and holds
-- only lessons that may still be told. Votes and origins are the truth of its counters: one of each for a pair of execution and
-- lesson, so that what is repeated after a crash counts once. `outcome` is 0 unobserved, 1 helpful, 2 neutral, 3 harmful: of two
-- votes of the same execution the greater stays.

CREATE TABLE lessons (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  standing TEXT NOT NULL CHECK (standing IN ('candidate', 'trusted', 'retired')),
  role TEXT NOT NULL,
  workspace TEXT NOT NULL,
  source TEXT NOT NULL,
  task TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  helpful INTEGER NOT NULL DEFAULT 0,
  neutral INTEGER NOT NULL DEFAULT 0,
  harmful INTEGER NOT NULL DEFAULT 0,
  unobserved INTEGER NOT NULL DEFAULT 0,
  confirmations INTEGER NOT NULL DEFAULT 0,
  by_person INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE votes (
  lesson INTEGER NOT NULL REFERENCES lessons (n),
  step TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  evidence TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  PRIMARY KEY (lesson, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE origins (
  lesson INTEGER NOT NULL REFERENCES lessons (n),
  step TEXT NOT NULL,
  source TEXT NOT NULL,
  gate TEXT NOT NULL,
  round INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  PRIMARY KEY (lesson, step)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE words USING fts5 (text, task, content = 'lessons', content_rowid = 'n', tokenize = 'unicode61');

CREATE TRIGGER lessons_added AFTER INSERT ON lessons WHEN new.standing <> 'retired' BEGIN
  INSERT INTO words (rowid, text, task) VALUES (new.n, new.text, new.task);
END;
CREATE TRIGGER lessons_unindexed BEFORE UPDATE OF text, standing ON lessons WHEN old.standing <> 'retired' BEGIN
  INSERT INTO words (words, rowid, text, task) VALUES ('delete', old.n, old.text, old.task);
END;
CREATE TRIGGER lessons_indexed AFTER UPDATE OF text, standing ON lessons WHEN new.standing <> 'retired' BEGIN
  INSERT INTO words (rowid, text, task) VALUES (new.n, new.text, new.task);
END;
