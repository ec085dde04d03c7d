"""Any body at any address of the service is answered, wrong ones by a problem, and never by a fault of ours (SE-03, SV-04)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from support.studio import Served, served
from treadle.testing import Turn

FEWER = max(10, settings.default.max_examples // 4)  # an example is two requests
LEAVES = st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | st.text(max_size=8)
KEYS = (
    "seen actor reason text task loop request_id decision choices max_rounds max_cost_usd max_turns max_time guards "
    "steps title status depth label seq adopt retry_incomplete price warn_at compact_at digest attached"
).split()
BODY = st.dictionaries(
    st.sampled_from(KEYS), LEAVES | st.lists(st.dictionaries(st.sampled_from(KEYS), LEAVES, max_size=3), max_size=2)
)
ACTS = ("", "/NAME/pause", "/NAME/resume", "/NAME/cancel", "/NAME/answer", "/NAME/approve", "/NAME/reject")
SHAPES = ("/NAME/extend", "/NAME/plan", "/NAME/plan/steps/1", "/NAME/compact", "/NAME/pins", "/NAME/forks")
READS = ("", "/log", "/rounds", "/turns", "/turns/1", "/outputs/c", "/window", "/map")
ASKS = Turn(text="asking", calls=(("ask_person", {"question": "which?", "choices": ["a", "b"]}),))


async def put(it: Served, path: str, body: Any) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode(errors="surrogatepass")
    headers = {"Idempotency-Key": uuid4().hex, "content-type": "application/json"}
    found = await it.client.post(f"/api/executions{path}", content=data, headers=headers)
    assert found.status_code < 500, (path, body, found.text)
    if found.status_code >= 400:
        assert found.headers["content-type"].startswith("application/problem+json"), found.text


async def look(it: Served, path: str, query: dict[str, str]) -> None:
    found = await it.client.get(path, params=query)
    assert found.status_code < 500, (path, query, found.text)


@pytest.mark.slow
@pytest.mark.req("SE-03", "SV-04")
def test_any_body_and_any_query_are_answered_without_a_fault_of_ours() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(served(Path(folder), [ASKS, ASKS])) as it,
    ):
        name = portal.call(it.start, it.loop("verify: {check: 'true'}\n"))

        @given(
            path=st.sampled_from(ACTS + SHAPES),
            body=BODY | LEAVES | st.binary(max_size=20),
            read=st.sampled_from(READS),
            query=st.dictionaries(st.sampled_from(["after", "limit", "tail", "start", "end"]), st.text(max_size=6)),
        )
        @settings(max_examples=FEWER, phases=[Phase.explicit, Phase.reuse, Phase.generate])
        def one(path: str, body: Any, read: str, query: dict[str, str]) -> None:
            portal.call(put, it, path.replace("NAME", name), body)
            portal.call(look, it, f"/api/executions/{name}{read}", query)

        one()
