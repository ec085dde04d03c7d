-- Every statement that the lesson store makes in normal work, each under its name. The tables are explained in lessons/.

-- name: documents
SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT 128);

-- name: match
SELECT l.* FROM (SELECT rowid, rank FROM words WHERE words MATCH ?1 ORDER BY rank LIMIT ?5) AS w
JOIN lessons AS l ON l.n = w.rowid
WHERE l.standing <> 'retired' AND l.role = ?2 AND l.workspace IN (?3, '') ORDER BY w.rank LIMIT ?4;

-- name: newest_match
SELECT l.* FROM (SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?5) AS w
JOIN lessons AS l ON l.n = w.rowid
WHERE l.standing <> 'retired' AND l.role = ?2 AND l.workspace IN (?3, '') LIMIT ?4;

-- name: size
SELECT coalesce(max(n), 0) FROM lessons;

-- name: find
SELECT * FROM lessons WHERE id = ?;

-- name: find_from
SELECT * FROM lessons WHERE substr(id, 1, length(?1)) = ?1 LIMIT 6;

-- name: all
SELECT * FROM lessons ORDER BY n DESC;

-- name: add
INSERT INTO lessons (id, text, standing, role, workspace, source, task, created_us)
VALUES (?, ?, 'candidate', ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: add_origin
INSERT INTO origins (lesson, step, source, gate, round, at_us) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: add_vote
INSERT INTO votes (lesson, step, outcome, evidence, at_us) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (lesson, step) DO UPDATE SET outcome = excluded.outcome, evidence = excluded.evidence
WHERE excluded.outcome > outcome;

-- name: tally
SELECT coalesce(sum(outcome = 0), 0), coalesce(sum(outcome = 1), 0), coalesce(sum(outcome = 2), 0),
  coalesce(sum(outcome = 3), 0), (SELECT count(*) FROM origins WHERE lesson = ?1)
FROM votes WHERE lesson = ?1;

-- name: counted
UPDATE lessons SET unobserved = ?, helpful = ?, neutral = ?, harmful = ?, confirmations = ? WHERE n = ?;

-- name: stands
UPDATE lessons SET standing = ?, reason = ? WHERE n = ?;

-- name: reword
UPDATE lessons SET text = ? WHERE n = ?;

-- name: confirm
UPDATE lessons SET by_person = 1, standing = 'trusted', reason = '' WHERE n = ?;

-- name: forgive
DELETE FROM votes WHERE lesson = ? AND outcome = 3;

-- name: origins
SELECT step, source, gate, round, at_us FROM origins WHERE lesson = ? ORDER BY at_us, step;

-- name: votes
SELECT step, outcome, evidence, at_us FROM votes WHERE lesson = ? ORDER BY at_us, step;
