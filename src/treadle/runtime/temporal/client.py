"""The way to a Temporal server, and the doorbell of an execution."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError

from treadle.core.errors import ConfigurationError

from .workflow import EXECUTION, RING, Ticket

QUEUE = "treadle"
TASK_TIMEOUT = timedelta(seconds=5)


class Address(NamedTuple):
    """Where the server is; an empty part is what Temporal's own configuration says."""

    host: str
    namespace: str
    queue: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """HOST:PORT[/NAMESPACE[/QUEUE]]. ConfigurationError."""
        host, *rest = text.split("/")
        if len(rest) > 2 or (host and not host.rpartition(":")[2].isdecimal()):
            raise ConfigurationError(
                f"--address {text!r} is no HOST:PORT[/NAMESPACE[/QUEUE]]. Example: --address 127.0.0.1:7233"
            )
        namespace, queue = (*rest, "", "")[:2]
        return cls(host, namespace, queue or QUEUE)


async def connect(address: Address, environ: Mapping[str, str]) -> Client:
    """Keys and certificates are where Temporal's own tools look for them: TEMPORAL_… and its configuration file. ConfigurationError."""
    try:
        given = ClientConfig.load_client_connect_config(override_env_vars=dict(environ))
        if address.host:
            given["target_host"] = address.host
        if address.namespace:
            given["namespace"] = address.namespace
        given.setdefault("target_host", "127.0.0.1:7233")
        return await Client.connect(**given)
    except (RuntimeError, OSError, ValueError) as error:
        where = address.host or "its configuration"
        raise ConfigurationError(f"The Temporal server at {where} cannot be reached: {error}") from error


class Bell:
    """Rings for executions: their workflow is started where none is open."""

    def __init__(self, client: Client, queue: str) -> None:
        self.client, self.queue = client, queue

    async def ring(self, execution_id: str) -> None:
        """Says that the ledger has news of it; empty, since the ledger has it all. RPCError where the server is away."""
        await self.client.start_workflow(
            EXECUTION,
            Ticket(execution_id),
            id=execution_id,
            task_queue=self.queue,
            start_signal=RING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            task_timeout=TASK_TIMEOUT,
        )


__all__ = ["Address", "Bell", "RPCError", "connect"]
