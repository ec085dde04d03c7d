"""Which changed files a check command reads, told by its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.effects.checks import reads

pytestmark = pytest.mark.req("AG-29")


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("pytest -q", "test_kit.py"),
        ("pytest -q", "sub/kit_test.py"),
        ("pytest -q", "conftest.py"),
        ("pytest -q", "tests/data/expected.json"),
        ("pytest -q", "pyproject.toml"),
        ("pytest checks/all", "checks/all/first.py"),
        ("pytest 'checks/one.py::test_a'", "checks/one.py"),
        ("python3.11 -m pytest", "tox.ini"),
        ("python -m tools.verify", "tools/verify.py"),
        ("python -m tools.verify", "tools/verify/__main__.py"),
        ("./check.sh --strict", "check.sh"),
        ("/w/check.sh", "check.sh"),
        ("sh ci/check.sh", "ci/check.sh"),
        ("mytool --config=ci/rules.toml", "ci/rules.toml"),
        ("mytool --config ci/rules.toml", "ci/rules.toml"),
        ("cat cases/*.txt", "cases/one.txt"),
        ("npm test", "package.json"),
        ("npx vitest run", "vitest.config.ts"),
        ("npm test", "src/__tests__/a.ts"),
        ("npm test", "src/app.spec.tsx"),
        ("npm test", "src/app.test.mjs"),
        ("make check", "Makefile"),
        ("cd sub && make check", "Makefile"),
        ("make check;true", "Makefile"),
        ("cargo test", "Cargo.toml"),
        ("go test ./...", "kit_test.go"),
        ("./gradlew test", "build.gradle.kts"),
        ("mvn test", "src/x/FooTest.java"),
        (["sh", "-c", "pytest -q && ./check.sh"], "check.sh"),
        (["pytest", "my tests.py"], "my tests.py"),
        ("echo it's && pytest", "test_kit.py"),
    ],
)
def test_files_that_the_check_reads(command, path):
    assert reads(command, "/w")(path)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("pytest -q", "kit.py"),
        ("pytest -q", "package.json"),
        ("pytest -q", "Makefile"),
        ("ruff check src", "src/kit.py"),
        ("ruff check .", "kit.py"),
        ("./check.sh", "other/check.sh"),
        ("/elsewhere/check.sh", "check.sh"),
        ("make check", "pyproject.toml"),
        ("pytest -q", "attest.py"),
        ("pytest ../tests", "kit.py"),
    ],
)
def test_files_that_it_does_not(command, path):
    assert not reads(command, "/w")(path)


@given(st.text(max_size=30) | st.lists(st.text(max_size=10), max_size=4), st.text(max_size=20))
def test_no_command_and_no_path_is_too_odd(command, path):
    assert reads(command, "/w")(path) in (True, False)
