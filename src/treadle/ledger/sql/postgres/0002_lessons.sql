-- Version 2: what loops have taught, in the tables of the SQLite store of lessons (see ../lessons/), with one difference: the index of words
-- is a table of its own, kept by whoever writes a lesson. It holds only lessons that may still be told.

CREATE TABLE treadle_lessons (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  text text NOT NULL,
  standing text NOT NULL CHECK (standing IN ('candidate', 'trusted', 'retired')),
  role text NOT NULL,
  workspace text NOT NULL,
  source text NOT NULL,
  task text NOT NULL,
  created_us bigint NOT NULL,
  helpful integer NOT NULL DEFAULT 0,
  neutral integer NOT NULL DEFAULT 0,
  harmful integer NOT NULL DEFAULT 0,
  unobserved integer NOT NULL DEFAULT 0,
  confirmations integer NOT NULL DEFAULT 0,
  by_person integer NOT NULL DEFAULT 0,
  reason text NOT NULL DEFAULT ''
);

CREATE TABLE treadle_lesson_votes (
  lesson bigint NOT NULL REFERENCES treadle_lessons (n),
  step text COLLATE "C" NOT NULL,
  outcome integer NOT NULL,
  evidence text NOT NULL,
  at_us bigint NOT NULL,
  PRIMARY KEY (lesson, step)
);

CREATE TABLE treadle_lesson_origins (
  lesson bigint NOT NULL REFERENCES treadle_lessons (n),
  step text COLLATE "C" NOT NULL,
  source text NOT NULL,
  gate text NOT NULL,
  round integer NOT NULL,
  at_us bigint NOT NULL,
  PRIMARY KEY (lesson, step)
);

CREATE TABLE treadle_lesson_words (
  word text COLLATE "C" NOT NULL,
  lesson bigint NOT NULL REFERENCES treadle_lessons (n),
  PRIMARY KEY (word, lesson)
);

CREATE INDEX treadle_lesson_words_of ON treadle_lesson_words (lesson);
