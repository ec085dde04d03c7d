"""Schemathesis asks every operation of the service, with what fits its description and with what does not, on executions that are there.

Each is answered as it is described, faults by a problem, never by a fault of ours, and nothing without the token (SE-03, SV-04, SV-05).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.studio import Served, served
from treadle.server.asgi import openapi as description
from treadle.testing import Turn

EXAMPLES = max(
    2, settings.default.max_examples // 25
)  # of each operation, of what fits its description and of what does not
ASKS = Turn(text="asking", calls=(("ask_person", {"question": "which?", "choices": ["a", "b"]}),))
DONE = Turn(text="done", calls=(("finish", {"summary": "did it"}),))
STREAM = "/api/events"  # without an end: tests/studio/test_stream.py
PUBLIC = "/api/health"
CHECKED = "verify: {check: 'true'}\n"


def answer(body: dict[str, Any]) -> Turn:
    return ASKS if "ASKS" in str(body["messages"]) else DONE


class Asked:
    """A service with an execution that has ended and one that waits, and what their parts are called."""

    def __init__(self, portal: BlockingPortal, it: Served) -> None:
        self.portal, self.it = portal, it
        self.text = it.loop(CHECKED)
        self.names = [portal.call(it.start, self.text, task) for task in ("ASKS", "ENDS")]
        found = [portal.call(it.rest, name) for name in self.names]
        self.heads = {name: one["head"] for name, one in zip(self.names, found, strict=True)}
        portal.call(self._save)
        turn = portal.call(it.get, f"/api/executions/{self.names[0]}/turns/1")
        self.known = {
            "execution_id": self.names,
            "other": self.names,
            "name": ["mine", "record"],
            "call_id": [turn["calls"][0]["id"]],
            "number": [1],
            "step": ["1"],
        }

    async def _save(self) -> None:
        await self.it.client.put("/api/loops/mine", json={"text": self.text})

    def fit(self, case: Any, data: st.DataObject) -> None:
        """Names that are there in place of those made up, mostly; and a sequence that is not stale."""
        for name in case.path_parameters or {}:
            if data.draw(st.integers(0, 3)):
                case.path_parameters[name] = data.draw(st.sampled_from(self.known[name]))
        at = (case.path_parameters or {}).get("execution_id")
        if isinstance(case.body, dict) and at in self.heads and "seen" in case.body:
            case.body["seen"] = self.heads[at]

    def send(self, case: Any, *, token: bool = True) -> Any:
        """Its answer, over ASGI."""
        given = case.as_transport_kwargs(base_url=self.it.access.origin)
        body = {key: given[key] for key in ("json", "data", "files") if given.get(key) is not None}
        if isinstance(body.get("data"), bytes | str):
            body["content"] = body.pop("data")
        headers = {str(key): str(value) for key, value in given["headers"].items()}
        headers.setdefault("Idempotency-Key", uuid4().hex)
        if not token:
            headers["authorization"] = "Bearer nonsense"

        async def ask() -> Any:
            return await self.it.client.request(
                given["method"], given["url"], params=given.get("params"), headers=headers, **body
            )

        return self.portal.call(ask)


@pytest.mark.req("SE-03", "SV-04", "SV-05")
def test_every_operation_answers_as_it_is_described_whatever_it_is_asked() -> None:
    from schemathesis import GenerationMode, openapi  # a second to import: not while tests are collected

    with (
        tempfile.TemporaryDirectory() as folder,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(served(Path(folder), answer)) as it,
    ):
        asked = Asked(portal, it)
        for found in openapi.from_dict(description()).get_all_operations():
            operation = found.ok()
            if operation.path == STREAM:
                continue
            _ask(asked, operation, GenerationMode.POSITIVE)
            if operation.body or any(operation.query):
                _ask(asked, operation, GenerationMode.NEGATIVE)


def _ask(asked: Asked, operation: Any, mode: Any) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as c

    conform = (c.status_code_conformance, c.content_type_conformance, c.response_schema_conformance)
    demands = [not_a_server_error, *conform, c.negative_data_rejection]

    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def one(case: Any, data: st.DataObject) -> None:
        asked.fit(case, data)
        case.validate_response(asked.send(case), checks=demands)
        if operation.path != PUBLIC:
            assert asked.send(case, token=False).status_code == 401

    one()
