"""`treadle frame`: the continuation of an execution, to be read, checked and carried elsewhere (FR-27)."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from .options import Execution, Json, Store, Workspace

if TYPE_CHECKING:
    from treadle.app.runtime import Runtime
    from treadle.kernel.states import LoopState

    from .place import Place

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="The continuation of an execution: everything that is needed to go on elsewhere.",
)


@app.command()
def show(execution: Execution, store: Store = None, json: Json = False) -> None:
    """Print the frame as it stands; with --json in its sealed form, with version and digest."""
    from .place import place

    anyio.run(partial(_show, place(store), execution, json=json))


@app.command()
def verify(
    what: Annotated[str, typer.Argument(metavar="EXEC|FILE", help="An execution, or a file that export has written.")],
    store: Store = None,
) -> None:
    """Check a frame: digest, fields, invariants, messages, and whether the workspace is still what act left."""
    from .place import place

    anyio.run(partial(_verify, place(store), what))


@app.command()
def export(
    execution: Execution,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; '-' is stdout.")] = "-",
    store: Store = None,
) -> None:
    """Write the frame with all records and outputs to one file. Go on in one place only."""
    from .place import place

    anyio.run(partial(_export, place(store), execution, file))


@app.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export has written.")],
    workspace: Workspace = None,
    store: Store = None,
) -> None:
    """Take an exported execution into a store; then treadle resume. --workspace says where its folder is here."""
    from .place import place

    anyio.run(partial(_import, place(store), file, workspace))


async def _show(where: Place, execution: str, *, json: bool) -> None:
    import msgspec

    from treadle.kernel.continuation import frame_of
    from treadle.kernel.frame import dump_frame

    from .place import found, opened

    async with opened(where) as runtime:
        _, state = await found(runtime, execution)
    sealed = dump_frame(frame_of(state), max_iterations=state.settings.max_rounds)
    if not json:
        sealed = msgspec.json.format(
            msgspec.json.encode(msgspec.json.decode(sealed, type=dict[str, msgspec.Raw])["frame"])
        )
    sys.stdout.buffer.write(sealed + b"\n")


async def _verify(where: Place, what: str) -> None:
    from treadle.app.carry import is_export, read_export
    from treadle.kernel.frame import load_frame

    from .output import warn
    from .place import found, opened

    if Path(what).is_file():  # noqa: ASYNC240 - a small file, before anything runs
        data = _read(Path(what))
        if is_export(data):
            carried = read_export(data)
            warn(f"{what}: a sound export of {carried.execution_id}, {len(carried.records)} records.")
        else:
            frame = load_frame(data.rstrip(b"\n"), max_iterations=None)
            warn(f"{what}: a sound frame of {frame.step_exec_id}.")
        return
    async with opened(where) as runtime:
        row, state = await found(runtime, what)
        await _verify_state(where, runtime, row.execution_id, state)
    warn(f"{row.execution_id}: its frame is sound.")


async def _verify_state(where: Place, runtime: Runtime, execution_id: str, state: LoopState) -> None:
    import msgspec

    from treadle.app.carry import message_finder
    from treadle.core.errors import StaleScopeReceipt
    from treadle.kernel.continuation import frame_of, identity_of
    from treadle.kernel.frame import dump_frame, load_frame

    from .workspace import scope_of

    most = state.settings.max_rounds
    finder = message_finder(await runtime.ledger.records(execution_id))
    sealed = dump_frame(frame_of(state), max_iterations=most)
    frame = load_frame(sealed, max_iterations=most, identity=identity_of(state), has_message=finder)
    stored = frame.last_act_scope_receipt_json
    receipt = msgspec.json.decode(stored) if stored else None
    if receipt and (await scope_of(where, state).receipt(receipt["base"])).digest != receipt["digest"]:
        raise StaleScopeReceipt(path="$.frame.lastActScopeReceiptJson")


async def _export(where: Place, execution: str, file: str) -> None:
    from treadle.app.carry import export
    from treadle.core.errors import ConfigurationError, OwnerAlive

    from .output import warn
    from .place import found, opened

    async with opened(where) as runtime:
        row, state = await found(runtime, execution)
        if row.owner_alive:
            raise OwnerAlive(
                f"{row.execution_id} is being run by {row.owner}: stop it first, or it would go on in two places."
            )
        data = await export(runtime.ledger, row.execution_id, state)
    if file == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        Path(file).write_bytes(data)  # noqa: ASYNC240 - nothing else runs
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}.") from error
    warn(f"wrote {file}. On the other machine: treadle frame import {file} --workspace DIR, then treadle resume.")


async def _import(where: Place, file: Path, workspace: Path | None) -> None:
    from treadle.app.carry import import_into, read_export
    from treadle.app.moving import moved

    from .output import warn
    from .person import user_name
    from .place import opened

    carried = read_export(_read(file))
    more = await moved(carried, workspace, where.settings.state_dir / "trees", actor=user_name())
    async with opened(where, create=True) as runtime:
        at_us = runtime.clock.wall_us()
        await import_into(runtime.ledger, carried, more, owner=runtime.owner, at_us=at_us)
    warn(f"took in {carried.execution_id}. Next: treadle resume {carried.execution_id}")


def _read(file: Path) -> bytes:
    from treadle.core.errors import ConfigurationError

    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from error
