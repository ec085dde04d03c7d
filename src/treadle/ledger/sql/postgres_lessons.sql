-- Every statement that the lesson store makes on Postgres, each under its name. The tables are explained in postgres/0002_lessons.sql.

-- name: documents
SELECT w.word, (SELECT count(*) FROM (SELECT 1 FROM treadle_lesson_words AS i WHERE i.word = w.word LIMIT 128) AS few)
FROM unnest(%s::text[]) AS w (word);

-- name: match
SELECT l.* FROM (
  SELECT lesson, count(*) AS shared FROM treadle_lesson_words WHERE word = ANY (%s) GROUP BY lesson
  ORDER BY shared DESC, lesson DESC LIMIT %s
) AS w JOIN treadle_lessons AS l ON l.n = w.lesson
WHERE l.standing <> 'retired' AND l.role = %s AND l.workspace IN (%s, '') ORDER BY w.shared DESC, l.n DESC LIMIT %s;

-- name: newest_match
SELECT l.* FROM (
  SELECT lesson FROM treadle_lesson_words WHERE word = ANY (%s) GROUP BY lesson HAVING count(*) = %s
  ORDER BY lesson DESC LIMIT %s
) AS w JOIN treadle_lessons AS l ON l.n = w.lesson
WHERE l.standing <> 'retired' AND l.role = %s AND l.workspace IN (%s, '') ORDER BY l.n DESC LIMIT %s;

-- name: size
SELECT coalesce(max(n), 0) FROM treadle_lessons;

-- name: find
SELECT * FROM treadle_lessons WHERE id = %s;

-- name: find_locked
SELECT * FROM treadle_lessons WHERE id = %s FOR UPDATE;

-- name: find_from
SELECT * FROM treadle_lessons WHERE starts_with(id, %s) LIMIT 6;

-- name: by_number
SELECT * FROM treadle_lessons WHERE n = %s;

-- name: all
SELECT * FROM treadle_lessons ORDER BY n DESC;

-- name: add
INSERT INTO treadle_lessons (id, text, standing, role, workspace, source, task, created_us)
VALUES (%s, %s, 'candidate', %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING;

-- name: add_origin
INSERT INTO treadle_lesson_origins (lesson, step, source, gate, round, at_us) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING;

-- name: add_vote
INSERT INTO treadle_lesson_votes AS v (lesson, step, outcome, evidence, at_us) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (lesson, step) DO UPDATE SET outcome = excluded.outcome, evidence = excluded.evidence
WHERE excluded.outcome > v.outcome;

-- name: tally
SELECT count(*) FILTER (WHERE outcome = 0), count(*) FILTER (WHERE outcome = 1), count(*) FILTER (WHERE outcome = 2),
  count(*) FILTER (WHERE outcome = 3), (SELECT count(*) FROM treadle_lesson_origins WHERE lesson = %s)
FROM treadle_lesson_votes WHERE lesson = %s;

-- name: counted
UPDATE treadle_lessons SET unobserved = %s, helpful = %s, neutral = %s, harmful = %s, confirmations = %s WHERE n = %s;

-- name: stands
UPDATE treadle_lessons SET standing = %s, reason = %s WHERE n = %s;

-- name: reword
UPDATE treadle_lessons SET text = %s WHERE n = %s;

-- name: confirm
UPDATE treadle_lessons SET by_person = 1, standing = 'trusted', reason = '' WHERE n = %s;

-- name: forgive
DELETE FROM treadle_lesson_votes WHERE lesson = %s AND outcome = 3;

-- name: unindex
DELETE FROM treadle_lesson_words WHERE lesson = %s;

-- name: index
INSERT INTO treadle_lesson_words (word, lesson) SELECT unnest(%s::text[]), %s;

-- name: origins
SELECT step, source, gate, round, at_us FROM treadle_lesson_origins WHERE lesson = %s ORDER BY at_us, step;

-- name: votes
SELECT step, outcome, evidence, at_us FROM treadle_lesson_votes WHERE lesson = %s ORDER BY at_us, step;
