"""`treadle lease`: what the acting agent of a loop may touch, shown and changed (FR-12)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import anyio

from .arguments import Namespace, Parser
from .person import speaker
from .values import seconds

if TYPE_CHECKING:
    from treadle.kernel.states import LoopState

    from .place import Place

CAPABILITY = "namespace or namespace:glob, such as fs.write:src/** or process.spawn:pytest*"


def parser(name: str) -> Parser:
    """Arguments of the one that is named: lease ls, lease grant, lease revoke."""
    if name == "lease ls":
        return (
            Parser(name, ls, "List what was granted and revoked, in order: of those that match, the last decides.")
            .execution()
            .store()
            .json()
        )
    op: Literal["grant", "revoke"] = "grant" if name == "lease grant" else "revoke"
    text = {
        "grant": "Grant a capability to the acting agent, within the ceiling of its definition.",
        "revoke": "Take a capability away; it bites before the next tool call.",
    }[op]
    made = Parser(name, partial(change, op=op), text).execution()
    made.add_argument("capability", metavar="CAPABILITY", help=CAPABILITY)
    made.option("--scope", metavar="turn|step|loop", default="loop", help="when it ends by itself (default: loop)")
    made.option("--for", dest="lasts", metavar="DURATION", type=seconds("--for"), help="it expires after 90s, 10m, 2h")
    return made.reason("why").actor().store().json()


def ls(given: Namespace) -> int:
    """Prints them."""
    from .place import place

    anyio.run(partial(_list, place(given.store), given.execution, json=given.json))
    return 0


def change(given: Namespace, *, op: Literal["grant", "revoke"]) -> int:
    """Grants or revokes, now or by the process that runs it."""
    from treadle.core.errors import ConfigurationError
    from treadle.kernel.steering import ChangeLease

    from .place import place

    if given.scope not in ("turn", "step", "loop"):
        raise ConfigurationError(f"--scope {given.scope!r} is none of turn, step and loop.")
    wish = ChangeLease(
        actor=speaker(given.actor),
        op=op,
        capability=given.capability,
        scope=given.scope,
        for_us=None if given.lasts is None else int(given.lasts * 1e6),
        reason=given.reason,
    )
    anyio.run(partial(_change, place(given.store), given.execution, wish, json=given.json))
    return 0


async def _list(where: Place, execution: str, *, json: bool) -> None:
    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
    _print(_loop(row.execution_id, state), json=json)


async def _change(where: Place, execution: str, wish: Any, *, json: bool) -> None:
    from .output import warn
    from .place import found, running

    async with running(where) as runtime:
        row, before = await found(runtime.ledger, execution)
        before = _loop(row.execution_id, before)
        state = await runtime.steer(row.execution_id, wish)
    if state.seq == before.seq:
        warn(f"{row.execution_id}: given to the process that runs it.")
    _print(state, json=json)


def _loop(execution_id: str, state: Any) -> LoopState:
    from treadle.core.errors import InputError
    from treadle.kernel.states import LoopState

    if not isinstance(state, LoopState):
        raise InputError(f"{execution_id} is a workflow; leases belong to a loop.")
    return state


def _print(state: LoopState, *, json: bool) -> None:
    from treadle.app.leases import leases_of

    from .output import print_json

    shown = leases_of(state)
    if json:
        print_json(shown)
        return
    import sys

    ceiling = shown["ceiling"]
    out = [f"ceiling  {'everything' if ceiling is None else ', '.join(ceiling) or 'nothing'}"]
    out += [
        f"{lease['op']:<7}  {lease['capability']:<32}  {lease['scope']:<4}  {lease['by']}"
        + (f"  {'expired' if lease['expired'] else 'until'} {lease['expires_at']}" if lease["expires_at"] else "")
        for lease in shown["leases"]
    ]
    sys.stdout.write("\n".join(out) + "\n")
