"""A Markdown file with YAML front matter, read so that every fault names the file and the line."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple, NoReturn, cast

from treadle.core.errors import ConfigurationError

LARGEST = 256 * 1024  # bytes
_FENCE = "---"


class Document(NamedTuple):
    """What stands between the fences, the line of each key, and what follows."""

    values: dict[str, Any]
    lines: dict[str, int]
    body: str


def read_document(file: Path, *, required: bool) -> Document:
    """ConfigurationError("FILE:LINE: …"); without front matter only where that is `required`."""
    try:
        found = file.stat()
        if not S_ISREG(found.st_mode):  # a pipe would be waited for, a device read for ever
            fault(file, 1, "is no ordinary file")
        if found.st_size > LARGEST:
            fault(file, 1, f"has more than {LARGEST // 1024} KiB")
        text = file.read_text(encoding="utf-8").replace("\r\n", "\n").removeprefix("\ufeff")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        fault(file, 1 + error.object[: error.start].count(b"\n"), "is not UTF-8")
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        if required:
            fault(file, 1, "must begin with front matter: a line ---, then name: and description:, then a line ---")
        return Document({}, {}, text.strip())
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        fault(file, 1, "has front matter without its closing ---")
    values, at = _values(file, "\n".join(lines[1:end]))
    return Document(values, at, "\n".join(lines[end + 1 :]).strip())


def fault(file: Path, line: int, what: str) -> NoReturn:
    """Raises the error that names the place."""
    raise ConfigurationError(f"{file}:{line}: {what}.")


def _values(file: Path, text: str) -> tuple[dict[str, Any], dict[str, int]]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        loaded: object = cast("Any", YAML(typ="rt", pure=True)).load(text)
    except MarkedYAMLError as error:
        told = cast("Any", error)
        line = int(told.problem_mark.line) + 2 if told.problem_mark is not None else 1
        fault(file, line, f"the front matter is no YAML: {told.problem or told.context or 'it cannot be read'}")
    except (YAMLError, ValueError, RecursionError) as error:
        fault(file, 1, f"the front matter is no YAML: {error}")
    if loaded is None:
        return {}, {}
    if not isinstance(loaded, dict):
        fault(file, 2, "the front matter must be names with values")
    mapping = cast("dict[Any, Any]", loaded)
    if strange := [key for key in mapping if not isinstance(key, str)]:
        fault(file, 2, f"the front matter has the name {strange[0]!r}, which is no text")
    places: Any = getattr(mapping, "lc", None)
    lines = {str(key): int(places.key(key)[0]) + 2 for key in mapping} if places is not None else {}
    return {str(key): value for key, value in mapping.items()}, lines
