"""Between workers and what they need: cables into network namespaces where the machine allows it, else cutting proxies."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from support.proxy import CuttingProxy


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one worker runs: what its command begins with, and its way to each thing that can be cut off from it."""

    prefix: list[str] = field(default_factory=list[str])
    ways: dict[str, CuttingProxy]


class Network(ABC):
    """Ways to ports of this machine, by name."""

    kind: str

    def __init__(self, ports: dict[str, int]) -> None:
        self.ports = ports
        self._proxies: list[CuttingProxy] = []

    @abstractmethod
    async def shared(self, name: str) -> CuttingProxy:
        """The one way to it that all workers have in common; it is never cut."""

    @abstractmethod
    async def place(self, number: int) -> Place:
        """Another place for a worker. Its ways are to all that is not shared."""

    async def close(self) -> None:
        for proxy in self._proxies:
            await proxy.close()

    async def _started(self, proxy: CuttingProxy) -> CuttingProxy:
        await proxy.start()
        self._proxies.append(proxy)
        return proxy


class Proxies(Network):
    """Everything is on the loopback: who is cut off has connections on which nothing comes any more."""

    kind = "cutting proxies"

    async def shared(self, name: str) -> CuttingProxy:
        return await self._started(CuttingProxy(self.ports.pop(name)))

    async def place(self, number: int) -> Place:
        return Place(ways={name: await self._started(CuttingProxy(port)) for name, port in self.ports.items()})


class Cable(CuttingProxy):
    """The end here of a pair of virtual interfaces: cut, it loses every packet, and neither side is told."""

    def __init__(self, to_port: int, host: str, link: str) -> None:
        super().__init__(to_port, host)
        self.link = link

    def cut(self) -> None:
        _ip("link", "set", self.link, "down")

    def heal(self) -> None:
        _ip("link", "set", self.link, "up")


class Namespaces(Network):
    """A network namespace for each worker, which has a cable to each service and nothing else.

    A service has one address, whichever worker asks; the worker's route to it goes over the cable to that service. Addresses are
    of the block that is set aside for measuring networks; what is lost is lost here, and leaves by no other interface.
    """

    kind = "network namespaces"

    def __init__(self, ports: dict[str, int]) -> None:
        """OSError where the machine does not allow it."""
        super().__init__(ports)
        self._own = os.getpid() % 256
        self._addresses = {name: f"198.18.{self._own}.{number}" for number, name in enumerate(ports, start=1)}
        self._names: list[str] = []
        self._cables = 0
        self._undo: list[tuple[str, ...]] = []
        try:
            self._do(
                ("route", "add", "blackhole", lost := f"198.19.{self._own}.0/24"), ("route", "del", "blackhole", lost)
            )
            for address in self._addresses.values():
                on = (f"{address}/32", "dev", "lo")
                self._do(("addr", "add", *on), ("addr", "del", *on))
            self._lay(self._space("try"), next(iter(self._addresses.values())))
        except OSError:
            self._take_down()
            raise

    async def shared(self, name: str) -> CuttingProxy:
        return await self._started(CuttingProxy(self.ports.pop(name), self._addresses[name]))

    async def place(self, number: int) -> Place:
        name, ways = self._space(f"w{number}"), dict[str, CuttingProxy]()
        for service, address in self._addresses.items():
            link = self._lay(name, address)
            if service in self.ports:
                ways[service] = await self._started(Cable(self.ports[service], address, link))
        return Place(prefix=["ip", "netns", "exec", name], ways=ways)

    async def close(self) -> None:
        await super().close()
        self._take_down()

    def _space(self, which: str) -> str:
        name = f"chaos-{os.getpid()}-{which}"
        self._do(("netns", "add", name), ("netns", "del", name))
        _ip("-n", name, "link", "set", "lo", "up")
        return name

    def _lay(self, name: str, address: str) -> str:
        """A cable from here into that namespace, which leads to that address. The name of the end here."""
        link, net = f"chaos{self._own}c{self._cables}", f"198.19.{self._own}"
        here, there = f"{net}.{4 * self._cables + 1}", f"{net}.{4 * self._cables + 2}"
        self._cables += 1
        _ip("link", "add", link, "type", "veth", "peer", "name", f"{link}p", "netns", name)
        _ip("addr", "add", f"{here}/30", "dev", link)
        _ip("link", "set", link, "up")
        _ip("-n", name, "addr", "add", f"{there}/30", "dev", f"{link}p")
        _ip("-n", name, "link", "set", f"{link}p", "up")
        _ip("-n", name, "route", "add", address, "via", here)
        return link

    def _do(self, command: tuple[str, ...], undo: tuple[str, ...]) -> None:
        _ip(*command)
        self._undo.append(undo)

    def _take_down(self) -> None:
        while self._undo:
            _ip(*self._undo.pop())


def _ip(*command: str) -> None:
    done = subprocess.run(["ip", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(command)}: {done.stderr.strip()}")


def network(ports: dict[str, int], *, namespaces: bool) -> Network:
    """Namespaces where they are wanted and this machine allows them."""
    if namespaces and os.getuid() == 0 and shutil.which("ip"):
        try:
            return Namespaces(dict(ports))
        except OSError as error:
            print(f"no network namespaces here: {error}")
    return Proxies(dict(ports))
