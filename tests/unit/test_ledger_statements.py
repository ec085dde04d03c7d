"""How SQL files are read."""

from treadle.ledger.statements import migrations, named, split


def test_a_script_is_split_between_statements_and_not_within_a_trigger():
    script = (
        "-- Prose; with a semicolon.\nCREATE TABLE a (x);\n\n"
        "CREATE TRIGGER t BEFORE UPDATE ON a\nBEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\n"
    )
    assert [statement.strip().splitlines()[-1] for statement in split(script)] == ["CREATE TABLE a (x);", "END;"]


def test_statements_have_names_and_prose_is_left_out():
    statements = named("statements")
    assert statements["find_kind"] == "SELECT id FROM kinds WHERE name = ?"
    assert all(not statement.startswith("--") and statement for statement in statements.values())


def test_every_file_of_sql_begins_with_prose():
    assert all(migration.sql.startswith("-- ") for migration in migrations())
