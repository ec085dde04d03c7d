"""What the service does: it reads executions, runs some itself, and steers all through the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from treadle.app.definition import defined
from treadle.app.ending import write_artifact
from treadle.app.forking import fork
from treadle.app.history import rounds
from treadle.app.listing import AnyState, state_of
from treadle.app.runtime import Reopening, Runtime, Session, resting
from treadle.core.endings import is_final
from treadle.core.errors import ConfigurationError, InputError, TreadleError, UnknownExecution
from treadle.core.events import KINDS
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Steering, Step
from treadle.ports.ledger import ExecutionRow, Ledger
from treadle.spec.commandline import encode

from .follower import Follower
from .once import Once
from .problems import Problem
from .sinks import Switchboard

if TYPE_CHECKING:
    from anyio.abc import TaskGroup, TaskStatus

    from treadle.spec.commandline import CommandLineLoop
    from treadle.spec.loopfile import LoopFile

Define = Callable[["LoopFile"], "CommandLineLoop"]
# What makes a wish stale: somebody has said something meanwhile, or it has come to rest or to a question.
TURNING_POINTS = {
    "suspended",
    "stopped",
    "interrupted",
    *(k for k, e in KINDS.items() if "actor" in e.__struct_fields__ and k not in ("pinned", "compaction.requested")),
}
PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Granted:
    """A wish that was taken. `given`: it lies with the process that runs the execution."""

    execution_id: str
    state: AnyState
    given: bool


class Studio:
    """One for the service. `define` makes a loop of a loop file, with the settings of the command line."""

    def __init__(
        self,
        runtime: Runtime,
        follower: Follower,
        *,
        workspace: Path,
        actor: str,
        define: Define,
        notes: Callable[[str], None],
        sinks: Switchboard | None = None,
    ) -> None:
        self.sinks = sinks
        self.runtime, self.follower = runtime, follower
        self.workspace, self.actor, self.define, self.notes = workspace, actor, define, notes
        self.once = Once(runtime.settings.state_dir, runtime.ledger.url)
        self.example = ""
        self.on_start: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._sessions: dict[str, Session] = {}
        self._group: TaskGroup | None = None

    @property
    def ledger(self) -> Ledger:
        """The store."""
        return self.runtime.ledger

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        """Follows, and runs what is started, until it is cancelled; then everything that runs here is interrupted."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self.follower.pump)
            group.start_soon(self.follower.follow)
            if self.on_start is not None:
                group.start_soon(self.on_start)
            task_status.started()

    # ---- reading

    async def found(self, execution_id: str) -> tuple[ExecutionRow, AnyState]:
        """The execution with exactly this id. UnknownExecution."""
        row = await self.ledger.row(execution_id)
        if row.execution_id != execution_id or not row.head:
            raise UnknownExecution(f"There is no execution {execution_id!r} in this store.")
        return row, await state_of(self.ledger, row)

    async def loop(self, execution_id: str) -> tuple[ExecutionRow, LoopState]:
        """The same for what only loops have. InputError for a workflow."""
        row, state = await self.found(execution_id)
        if not isinstance(state, LoopState):
            raise InputError(f"{execution_id} is a workflow, and only loops have that.")
        return row, state

    def runs_here(self, execution_id: str) -> bool:
        """Whether this very process drives it."""
        return execution_id in self._sessions

    # ---- writing

    async def start(self, file: LoopFile, task: str, *, key: str) -> Granted:
        """A new execution. Its id derives from the key, so that a start that is sent twice starts once, restarts included."""
        execution_id = blake2b(f"{self.ledger.url}\n{key}".encode(), digest_size=8).hexdigest()[:12]
        try:
            row, state = await self.found(execution_id)
            return Granted(row.execution_id, state, given=False)
        except UnknownExecution:
            pass
        flags = self.define(file)
        session = await self.runtime.start(
            flags.to_loop(), task or file.task, execution_id=execution_id, definition=encode(flags)
        )
        self._run(session)
        return Granted(execution_id, session.state, given=False)

    async def resume(self, execution_id: str, how: Reopening, *, seen: int) -> Granted:
        """Goes on with it here. InputError where it cannot go on so."""
        row, state = await self.loop(execution_id)
        await self._fresh(row, seen)
        if row.owner_alive or self.runs_here(execution_id):
            return Granted(execution_id, state, given=True)
        if why := resting(state, how):
            raise Problem(409, "rests", f"It does not go on so: {why}.", head=row.head)
        loop, definition, _ = defined(state.definition, None)
        session = await self.runtime.resume(execution_id, loop, how, definition=definition)
        self._run(session)
        return Granted(execution_id, session.state, given=False)

    async def step(self, execution_id: str, wish: Step, *, seen: int) -> Granted:
        """One turn or round: whoever runs it holds it after that; one that rests goes on here for so long."""
        row, _ = await self.loop(execution_id)
        if row.owner_alive or self.runs_here(execution_id):
            return await self.steer(execution_id, wish, seen=seen)
        return await self.resume(execution_id, Reopening(step=wish.unit, actor=wish.actor), seen=seen)

    async def steer(self, execution_id: str, wish: Steering, *, seen: int) -> Granted:
        """Carries it out, or gives it to whoever runs the execution. Problem 409 where something came in between."""
        row, before = await self.loop(execution_id)
        await self._fresh(row, seen)
        after = await self.runtime.steer(execution_id, wish)
        given = after.seq == before.seq
        if not given and not is_final(after.status, after.code) and not resting(after, Reopening()):
            await self._go_on(execution_id, after)
        return Granted(execution_id, after, given=given)

    async def fork(self, execution_id: str, at: int, *, key: str) -> Granted:
        """Another execution with the past of this one up to a record. It rests until it is resumed."""
        new_id = blake2b(f"{self.ledger.url}\nfork\n{key}".encode(), digest_size=8).hexdigest()[:12]
        try:
            row, state = await self.found(new_id)
            return Granted(row.execution_id, state, given=False)
        except UnknownExecution:
            pass
        await self.loop(execution_id)
        await fork(self.runtime, execution_id, at=at, name=new_id)
        return Granted(new_id, await self.runtime.state(new_id), given=False)

    async def _go_on(self, execution_id: str, state: LoopState) -> None:
        """What was answered or extended goes on here; one that cannot be built here waits for its own process."""
        if state.status != "running":
            return
        try:
            loop, definition, _ = defined(state.definition, None)
            self._run(await self.runtime.resume(execution_id, loop, Reopening(), definition=definition))
        except InputError as error:
            self.notes(f"{execution_id} does not go on here: {error}")

    async def _fresh(self, row: ExecutionRow, seen: int) -> None:
        """Problem 409 where a person, a question or an ending came after what the sender saw."""
        if seen > row.head and not self.runs_here(row.execution_id):
            raise Problem(409, "stale", f"There is no record {seen} yet: the last is {row.head}.", head=row.head)
        while page := await self.ledger.records(row.execution_id, after=seen, limit=PAGE):
            for record in page:
                if record.kind in TURNING_POINTS:
                    said = f"Record {record.seq} ({record.kind}) came after the last one that was seen, {seen}. Look again, then decide."
                    raise Problem(409, "stale", said, head=row.head)
            seen = page[-1].seq
        for one in await self.ledger.posted(row.execution_id):
            if one.kind == "answer":
                raise Problem(409, "stale", "An answer has been given already and is about to be taken.", head=row.head)

    # ---- loops of this process

    def _run(self, session: Session) -> None:
        assert self._group is not None
        self._sessions[session.execution_id] = session
        self.follower.here.add(session.execution_id)
        self._group.start_soon(self._drive, session)

    async def _drive(self, session: Session) -> None:
        name = session.execution_id
        try:
            await self._until_rest(session)
        except TreadleError as error:
            self.notes(f"{name}: {error}")
        finally:
            del self._sessions[name]
            self.follower.here.discard(name)

    async def _until_rest(self, session: Session) -> None:
        try:
            await session.run()
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()
        try:
            known = rounds(await self.ledger.records(session.execution_id))
            write_artifact(self.runtime.settings.state_dir, session.execution_id, session.state, known)
        except ConfigurationError as error:
            self.notes(str(error))


async def shielded(work: Awaitable[Granted]) -> Granted:
    """A write is never left half done because its sender has gone."""
    found: list[Granted] = []
    with anyio.CancelScope(shield=True):
        found.append(await work)
    return found[0]
