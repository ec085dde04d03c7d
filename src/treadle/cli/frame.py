"""`treadle frame`: the continuation of an execution, to be read, checked and carried elsewhere (FR-27)."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio

from .arguments import Namespace, Parser
from .values import whole

if TYPE_CHECKING:
    from treadle.core.events import Event
    from treadle.kernel.states import LoopState
    from treadle.ports.ledger import Ledger

    from .place import Place

NEWLINE = b"\n"


def parser(name: str) -> Parser:
    """Arguments of the one that is named: frame show, frame verify, frame export, frame import."""
    return _PARSERS[name](name)


def _show_parser(name: str) -> Parser:
    text = "Print the frame as it stands; with --json in its sealed form, with version and digest."
    made = Parser(name, show, text).execution()
    made.option("--at", metavar="SEQ", type=whole("--at"), help="as it was after this record; treadle log numbers them")
    return made.store().json()


def _history_parser(name: str) -> Parser:
    text = "Print which record changed which field of the frame, oldest first."
    made = Parser(name, history, text).execution()
    made.option("--field", metavar="NAME", default="", help="this field alone, such as grantedLoopLeases")
    return made.store().json()


def _verify_parser(name: str) -> Parser:
    text = "Check a frame: digest, fields, invariants, messages, and whether the workspace is still what act left."
    made = Parser(name, verify, text)
    made.add_argument("what", metavar="EXEC|FILE", help="an execution, or a file that export has written")
    return made.store()


def _export_parser(name: str) -> Parser:
    text = "Write the frame with all records and outputs to one file. Go on in one place only."
    made = Parser(name, export, text).execution()
    made.add_argument("file", metavar="FILE", nargs="?", default="-", help="where to (default: stdout)")
    return made.store()


def _import_parser(name: str) -> Parser:
    text = "Take an exported execution into a store; then treadle resume. --workspace says where its folder is here."
    made = Parser(name, import_, text)
    made.add_argument("file", metavar="FILE", type=Path, help="what export has written")
    return made.workspace().store()


_PARSERS: dict[str, Callable[[str], Parser]] = {
    "frame show": _show_parser,
    "frame history": _history_parser,
    "frame verify": _verify_parser,
    "frame export": _export_parser,
    "frame import": _import_parser,
}


def show(given: Namespace) -> int:
    """Prints the frame."""
    from .place import place

    anyio.run(partial(_show, place(given.store), given.execution, given.at, json=given.json))
    return 0


def history(given: Namespace) -> int:
    """Prints the changes."""
    from .place import place

    anyio.run(partial(_history, place(given.store), given.execution, given.field, json=given.json))
    return 0


def verify(given: Namespace) -> int:
    """Says that it is sound; a FrameError where it is not."""
    from .place import place

    anyio.run(partial(_verify, place(given.store), given.what))
    return 0


def export(given: Namespace) -> int:
    """Writes the file."""
    from .place import place

    anyio.run(partial(_export, place(given.store), given.execution, given.file))
    return 0


def import_(given: Namespace) -> int:
    """Reads the file into the store."""
    from .place import place

    anyio.run(partial(_import, place(given.store), given.file, given.workspace))
    return 0


async def _show(where: Place, execution: str, at: int | None, *, json: bool) -> None:
    import msgspec

    from treadle.app.carry_workflow import frame_of_workflow
    from treadle.app.frames import state_at
    from treadle.core.errors import InputError
    from treadle.kernel.continuation import frame_of
    from treadle.kernel.frame import dump_frame
    from treadle.kernel.states import LoopState

    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
        if at is not None:
            if not isinstance(state, LoopState):
                raise InputError(f"{row.execution_id} is a workflow: --at is for loops.")
            state = state_at(row.execution_id, await ledger.records(row.execution_id), at)
    if isinstance(state, LoopState):
        sealed = dump_frame(frame_of(state), max_iterations=state.settings.max_rounds)
    else:
        sealed = frame_of_workflow(row.execution_id, state)
    if not json:
        sealed = msgspec.json.format(
            msgspec.json.encode(msgspec.json.decode(sealed, type=dict[str, msgspec.Raw])["frame"])
        )
    sys.stdout.buffer.write(sealed + b"\n")


async def _history(where: Place, execution: str, field: str, *, json: bool) -> None:
    from treadle.app.frames import changes
    from treadle.core.errors import InputError
    from treadle.kernel.frame import FIELDS

    from .output import print_json
    from .place import found_loop, opened

    if field and field not in FIELDS:
        raise InputError(f"A frame has no field {field!r}. It has {', '.join(FIELDS)}.")
    async with opened(where) as ledger:
        row, _ = await found_loop(ledger, execution)
        told = [one for one in changes(await ledger.records(row.execution_id)) if field in ("", one.field)]
    if json:
        print_json([one._asdict() for one in told])
        return
    for one in told:
        sys.stdout.write(f"{one.seq:>5}  {one.event:<18} {one.field:<30} {_change(one.before, one.after)}\n")


def _change(old: object, new: object) -> str:
    """Before and after; of a list that was not empty, what has come and gone."""
    from treadle.core.spoken import one_line

    if old and all(isinstance(value, list) for value in (old, new)):
        before, after = _items(old), _items(new)
        gone = [f"- {one}" for one in before if one not in after]
        return one_line(", ".join([*gone, *(f"+ {one}" for one in after if one not in before)]), 140)
    return f"{one_line(_said(old), 60)} → {one_line(_said(new), 60)}"


def _items(value: object) -> list[str]:
    return [_said(item) for item in cast("list[object]", value)]


def _said(value: object) -> str:
    import msgspec

    return "-" if value is None else msgspec.json.encode(value).decode()


async def _verify(where: Place, what: str) -> None:
    from treadle.app.carry_workflow import export_workflow, read_any
    from treadle.kernel.states import LoopState

    from .output import warn
    from .place import found, opened

    if Path(what).is_file():  # noqa: ASYNC240 - a small file, before anything runs
        warn(f"{what}: a sound {_verified(_read(Path(what)))}.")
        return
    async with opened(where) as ledger:
        row, state = await found(ledger, what)
        if isinstance(state, LoopState):
            await _verify_state(where, ledger, row.execution_id, state)
        else:
            read_any(await export_workflow(ledger, row.execution_id, state))  # all records are folded anew
    warn(f"{row.execution_id}: its frame is sound.")


def _verified(data: bytes) -> str:
    """What a file holds, once it has been checked."""
    from treadle.app.carry_workflow import FRAME_KIND, kind_in, read_any, read_workflow_frame
    from treadle.kernel.frame import load_frame

    kind = kind_in(data)
    if kind.endswith("export"):
        carried = read_any(data)
        return f"export of {carried.execution_id}, {len(carried.records)} records"
    if kind == FRAME_KIND:
        return f"frame of the workflow {read_workflow_frame(data.rstrip(NEWLINE)).execution_id}"
    return f"frame of {load_frame(data.rstrip(NEWLINE), max_iterations=None).step_exec_id}"


async def _verify_state(where: Place, ledger: Ledger, execution_id: str, state: LoopState) -> None:
    import msgspec

    from treadle.app.carry import folded, message_finder
    from treadle.core.errors import BrokenInvariant, StaleScopeReceipt
    from treadle.kernel.continuation import frame_of, identity_of
    from treadle.kernel.frame import dump_frame, load_frame
    from treadle.kernel.grants import advance_proven
    from treadle.kernel.states import LoopState

    from .workspace import scope_of

    most = state.settings.max_rounds
    records = await ledger.records(execution_id, to=state.seq)
    if frame_of(folded(records, LoopState(), advance_proven)) != frame_of(state):
        raise BrokenInvariant("the snapshot in the store does not say what the records say", path="$.frame")
    finder = message_finder(records)
    sealed = dump_frame(frame_of(state), max_iterations=most)
    frame = load_frame(sealed, max_iterations=most, identity=identity_of(state), has_message=finder)
    stored = frame.last_act_scope_receipt_json
    receipt = msgspec.json.decode(stored) if stored else None
    if receipt and (await scope_of(where, state).receipt(receipt["base"])).digest != receipt["digest"]:
        raise StaleScopeReceipt(path="$.frame.lastActScopeReceiptJson")


async def _export(where: Place, execution: str, file: str) -> None:
    from treadle.app.carry import export
    from treadle.app.carry_workflow import export_workflow
    from treadle.core.errors import ConfigurationError, OwnerAlive
    from treadle.kernel.states import LoopState

    from .output import warn
    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
        if row.owner_alive:
            raise OwnerAlive(
                f"{row.execution_id} is being run by {row.owner}: stop it first, or it would go on in two places."
            )
        if isinstance(state, LoopState):
            data = await export(ledger, row.execution_id, state)
        else:
            data = await export_workflow(ledger, row.execution_id, state)
    if file == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        Path(file).write_bytes(data)  # noqa: ASYNC240 - nothing else runs
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}.") from error
    moves = " --workspace DIR" if isinstance(state, LoopState) else ""
    warn(f"wrote {file}. On the other machine: treadle frame import {file}{moves}, then treadle resume.")


async def _import(where: Place, file: Path, workspace: Path | None) -> None:
    from treadle.app.carry import Carried, import_family
    from treadle.app.carry_workflow import import_workflow, read_any
    from treadle.app.moving import moved
    from treadle.core.errors import ConfigurationError, FrameError

    from .output import warn
    from .person import user_name
    from .place import running

    try:
        carried = read_any(_read(file))
    except FrameError as error:
        error.args = (f"{file}: {error}",)
        raise
    if not isinstance(carried, Carried):
        if workspace is not None:
            raise ConfigurationError("--workspace is for a loop; a workflow's folders are named by its definition.")
        async with running(where, create=True) as runtime:
            await import_workflow(runtime.ledger, carried, owner=runtime.owner)
        name = carried.execution_id
        warn(f"took in {name}. Next, where its module can be imported: treadle resume {name}{where.flag}")
        return

    def more(one: Carried) -> Awaitable[list[Event]]:
        here = workspace if one is carried or one.state.workspace else None
        return moved(one, here, where.settings.state_dir, where.store, actor=user_name())

    await more(carried)  # what is wrong is said before anything is written
    async with running(where, create=True) as runtime:
        await import_family(runtime.ledger, carried, more, owner=runtime.owner, at_us=runtime.clock.wall_us())
    warn(f"took in {carried.execution_id}. Next: treadle resume {carried.execution_id}{where.flag}")


def _read(file: Path) -> bytes:
    from treadle.core.errors import ConfigurationError

    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from error
