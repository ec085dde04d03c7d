import pytest

from conformance.ledger_kit import STORES
from support import postgres


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=list(STORES))
def store(request, tmp_path):
    if request.param == "postgres" and postgres.binaries() is None:
        pytest.skip("no Postgres server is installed")
    return STORES[request.param](tmp_path)


@pytest.fixture
async def ledger(store):
    ledger = await store.open()
    yield ledger
    await ledger.close()


@pytest.fixture
async def other(store):
    """A second process on the same store."""
    ledger = await store.open()
    yield ledger
    await ledger.close()
