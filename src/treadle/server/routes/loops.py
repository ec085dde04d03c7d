"""Loop files of the workspace: list, read, check, save. Nothing outside `.treadle/loops` is read or written."""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import APIRouter
from starlette.responses import Response

from treadle.core.errors import ConfigurationError, InputError
from treadle.server import schemas
from treadle.server.problems import Problem
from treadle.server.studio import Studio
from treadle.spec import loopyaml
from treadle.spec.lint import lint

from .parts import TheStudio

router = APIRouter(prefix="/api/loops", tags=["loops"])
FOLDER = Path(".treadle") / "loops"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)


@router.get("")
async def loops(studio: TheStudio) -> schemas.LoopsOut:
    """All loop files, by name."""

    def look() -> list[schemas.LoopRow]:
        folder = studio.workspace / FOLDER
        files = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
        return [_row(file) for file in files if _NAME.fullmatch(file.stem) and file.is_file() and not file.is_symlink()]

    return schemas.LoopsOut(workspace=str(studio.workspace), loops=await anyio.to_thread.run_sync(look))


def _row(file: Path) -> schemas.LoopRow:
    text = file.read_text(encoding="utf-8", errors="replace")[: loopyaml.MAX_CHARACTERS + 1]
    found, findings = loopyaml.look(text)
    title = found.name if found else file.stem
    return schemas.LoopRow(name=file.stem, title=title, bytes=file.stat().st_size, valid=not findings)


@router.get("/schema", response_model=dict[str, Any])
async def schema() -> Response:
    """The JSON Schema of loop files."""
    file = Path(loopyaml.__file__).with_name("loopfile.schema.json")
    return Response(await anyio.to_thread.run_sync(file.read_bytes), media_type="application/json")


@router.post("/validate")
async def validate(body: schemas.ValidateIn) -> schemas.LoopOut:
    """What is wrong with it; nothing is stored, so it needs no key."""
    return _loop("", _text("", body.text, body.spec))


@router.get("/{name}")
async def loop(studio: TheStudio, name: str) -> schemas.LoopOut:
    """One loop file."""
    return await read_loop(studio, name)


@router.put("/{name}")
async def save(studio: TheStudio, name: str, body: schemas.LoopIn) -> schemas.LoopOut:
    """Saves it where it is as it was last seen (`digest`); 409 otherwise. Saying the same twice changes nothing."""
    file = _file(studio, name)

    def write() -> schemas.LoopOut:
        old = _read(file) if file.exists() else ""
        text = _text(old, body.text, body.spec)
        if old and _digest(old) != body.digest and old != text:
            raise Problem(
                409, "stale", f"{name} has been changed since it was read. Read it again.", digest=_digest(old)
            )
        if not old and body.digest:
            raise Problem(409, "stale", f"{name} is not there any more.", digest="")
        made = _loop(name, text)
        if made.spec is None:
            raise Problem(422, "loop-file", made.findings[0].message, findings=[f.model_dump() for f in made.findings])
        _write_whole(file, text)
        return made

    return await anyio.to_thread.run_sync(write)


async def read_loop(studio: Studio, name: str) -> schemas.LoopOut:
    """By name. Problem 404 where there is none."""
    file = _file(studio, name)
    if not file.is_file():
        raise Problem(404, "no-loop", f"There is no loop file {name!r} in {studio.workspace / FOLDER}.")
    return _loop(name, await anyio.to_thread.run_sync(_read, file))


def _loop(name: str, text: str) -> schemas.LoopOut:
    file, _ = loopyaml.look(text)
    return schemas.LoopOut(
        name=name,
        text=text,
        digest=_digest(text),
        spec=None if file is None else loopyaml.to_json(file),
        findings=[
            schemas.FindingOut(line=one.line, column=one.column, path=one.path, message=one.message, severity=severity)
            for severity, one, *_ in lint(text)  # with inputs that nothing produces (CV-21)
        ],
    )


def _text(old: str, text: str | None, spec: dict[str, Any] | None) -> str:
    if (text is None) == (spec is None):
        raise InputError("Give the file's text, or what it shall say (spec): one of the two.")
    return text if text is not None else loopyaml.updated(old, spec or {})


def _file(studio: Studio, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r:.120} is no name of a loop file: letters, digits, - and _, at most 100.")
    folder = studio.workspace / FOLDER
    file = folder / f"{name}.yaml"
    if file.is_symlink() or not folder.resolve().is_relative_to(studio.workspace.resolve()):
        raise InputError(f"{file} leads out of the workspace.")
    return file


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {error}") from error


def _write_whole(file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be written: {error.strerror}") from error


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
