"""What an execution did to the workspace, and the way back: `treadle diff`, `treadle revert` (AG-28)."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import anyio

from treadle.core.spoken import one_line

from .arguments import Namespace, Parser

if TYPE_CHECKING:
    from treadle.app.history import RoundRecord
    from treadle.effects.scope import GitScope
    from treadle.kernel.states import LoopState
    from treadle.ports.ledger import Ledger

    from .place import Place


LONGEST_NAME = 400  # characters of a path, which may hold anything but a line end here


def parser(name: str) -> Parser:
    """Arguments of the one that is named."""
    if name == "diff":
        text = (
            "What has changed in the workspace since it began; with --round, what that round's act changed.\n"
            "With a second execution: where the two part, what each has cost, and how their files differ."
        )
        made = Parser(name, diff, text).execution()
        made.add_argument("other", metavar="OTHER", nargs="?", help="an execution to compare it with")
        return made.round().store().json()
    text = (
        "Put the workspace back to how it was before it began; with --round, before that round.\n"
        "Changes that others made since then are undone, too. Ignored files are left alone."
    )
    return Parser(name, revert, text).execution().round().flag("-y", "--yes", help="do not ask").store()


def diff(given: Namespace) -> int:
    """Prints a unified diff."""
    from treadle.core.errors import ConfigurationError

    from .place import place

    if given.other is not None:
        if given.round is not None:
            raise ConfigurationError("--round is for one execution: leave it out to compare two.")
        anyio.run(partial(_compare, place(given.store), given.execution, given.other, json=given.json))
        return 0
    if given.json:
        raise ConfigurationError("--json is for two executions; the diff of one is text.")
    anyio.run(partial(_diff, place(given.store), given.execution, given.round))
    return 0


def revert(given: Namespace) -> int:
    """Puts files back, once a person is sure."""
    from .place import place

    return anyio.run(partial(_revert, place(given.store), given.execution, given.round, yes=given.yes))


async def _diff(where: Place, execution: str, number: int | None) -> None:
    from .place import found_loop, opened

    async with opened(where) as ledger:
        row, state = await found_loop(ledger, execution)
        base, head = await _trees(ledger, row.execution_id, number)
        text = await scope_of(where, state).diff(base, head or _left(state))
    sys.stdout.write(text)


async def _compare(where: Place, left: str, right: str, *, json: bool) -> None:
    from treadle.app.comparing import compare
    from treadle.core.errors import ScopeError

    from .output import print_json, warn
    from .place import found_loop, opened

    async with opened(where) as ledger:
        (a, state), (b, _) = await found_loop(ledger, left), await found_loop(ledger, right)
        found = await compare(ledger, a, b)
        before, after = found.pop("trees")
        text = ""
        if before and after:
            try:
                text = await scope_of(where, state).diff(before, after)
            except ScopeError as error:
                warn(f"their files cannot be compared: {error}")
    if json:
        print_json({**found, "diff": text})
        return
    sys.stdout.write(f"They part at record {found['parted_at']}.\n")
    sides = found["sides"]
    for name in (key for key in sides[0] if key not in ("outcome", "round_records")):
        sys.stdout.write(f"{name:<14} {sides[0][name]!s:<26} {sides[1][name]!s}\n")
    sys.stdout.write(text)


async def _revert(where: Place, execution: str, number: int | None, *, yes: bool) -> int:
    from treadle.core.errors import InputError, OwnerAlive

    from .output import warn
    from .place import found_loop, opened

    async with opened(where) as ledger:
        row, state = await found_loop(ledger, execution)
        if row.owner_alive:
            raise OwnerAlive(
                f"{row.execution_id} is being run by {row.owner}: stop it first (Ctrl-C there, or treadle cancel)."
            )
        if _left(state):
            raise InputError(
                "Its scope is closed. What was merged is undone by git revert, or by git reset before a push."
            )
        base, _ = await _trees(ledger, row.execution_id, number)
        scope = scope_of(where, state)
        ours = await _ours(ledger, row.execution_id, number)
        paths = tuple(path for path in (await scope.receipt(base)).paths if ours is None or path in ours)
        if not paths:
            warn("nothing has changed since then.")
            return 0
        if not yes and not _sure(scope.root, paths):
            warn("left as it is.")
            return 1
        done = await scope.revert(base, only=ours)
    warn(f"put back: {', '.join(one_line(path, LONGEST_NAME) for path in done)}")
    return 0


def _sure(root: str, paths: tuple[str, ...]) -> bool:
    from treadle.core.errors import ConfigurationError

    if not sys.stdin.isatty():
        raise ConfigurationError("Nobody is there to be asked: say --yes to put the workspace back.")
    sys.stderr.write(
        f"In {root}:\n"
        + "".join(f"  {one_line(path, LONGEST_NAME)}\n" for path in paths)
        + f"Put back {len(paths)} of them? [y/N] "
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _trees(ledger: Ledger, execution_id: str, number: int | None) -> tuple[str, str | None]:
    """(tree before, tree after; None for the workspace as it is). InputError where no round has one."""
    from treadle.app.history import rounds
    from treadle.core.errors import InputError

    known = rounds(await ledger.records(execution_id))
    one = _chosen(known, number)
    if not one.baseline:
        raise InputError("The workspace was not kept before this round: git is missing, or it had no workspace.")
    return one.baseline, (one.head or None) if number is not None else None


async def _ours(ledger: Ledger, execution_id: str, number: int | None) -> set[str] | None:
    """What act changed from that round on; None where an act has not ended, so that nobody can tell."""
    from treadle.app.history import rounds

    known = [one for one in rounds(await ledger.records(execution_id)) if number is None or one.round >= number]
    return {path for one in known for path in one.changed} if all(one.head for one in known) else None


def _chosen(known: list[RoundRecord], number: int | None) -> RoundRecord:
    from treadle.core.errors import InputError

    if number is None:
        return known[0]
    for one in known:
        if one.round == number:
            return one
    raise InputError(f"There is no round {number}: it has had {len(known)}.")


def _left(state: LoopState) -> str | None:
    """The tree that act left in a scope that is closed: its workspace may be no more."""
    import msgspec

    if state.scope is None or not state.scope.closed:
        return None
    receipt = msgspec.json.decode(state.last_receipt_json or "null")
    return str(receipt["head"]) if receipt else state.baseline


def scope_of(where: Place, state: LoopState) -> GitScope:
    """The workspace of an execution. InputError where it has none."""
    from treadle.app.moving import scope_of_loop

    return scope_of_loop(state, where.settings.state_dir, where.store)
