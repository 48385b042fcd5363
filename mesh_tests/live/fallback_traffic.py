"""Two producers of an anycast address with a fallback, and one consumer at a time: who saw what, in which order?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from wire.delivery import ACCEPTED

CREDIT = 20
UNDER_WAY = 50
DONE_S = 30.0


class Producer:
    """Sends `name:1`, `name:2`, ... and none a second time, whatever becomes of it."""

    def __init__(self, client: WireClient, address: str, name: str) -> None:
        self.client = client
        self._link = client.sender(address)
        self._name = name
        self._goal = 0
        self._numbers: list[int] = []

    def send_more(self, count: int) -> None:
        """As credit comes."""
        self._goal += count

    def move(self) -> None:
        while len(self._numbers) < self._goal and self._link.credit > 0 and self._under_way < UNDER_WAY:
            self._numbers.append(self.client.send(self._link, f"{self._name}:{len(self._numbers) + 1}"))

    @property
    def _under_way(self) -> int:
        return len(self._numbers) - len(self.client.outcomes)

    @property
    def is_done(self) -> bool:
        """All was sent and has its outcome."""
        return len(self._numbers) == self._goal and not self._under_way

    def run_until_more_is_seen(self, count: int) -> None:
        enough = len(self.seen) + count
        self.run_until(lambda: len(self.seen) > enough, f"{count} more")

    @property
    def accepted(self) -> list[str]:
        outcomes = map(self.client.outcomes.get, self._numbers)
        return [f"{self._name}:{at}" for at, outcome in enumerate(outcomes, 1) if outcome == ACCEPTED]

    def of(self, bodies: list[str]) -> list[str]:
        """Those of them that are its own, each once: where it was first."""
        return list(dict.fromkeys(body for body in bodies if body.startswith(f"{self._name}:")))


class Consumer:
    """Accepts all at once."""

    def __init__(self, client: WireClient, address: str, seen: list[str]) -> None:
        self.client = client
        self._link = client.receiver(address, credit=CREDIT)
        self._seen = seen

    def move(self) -> None:
        arrived, self.client.arrived = self.client.arrived, []
        for each in arrived:
            self._seen.append(each.body)
            each.settle(ACCEPTED)
        if arrived and self._link.credit < CREDIT // 2:
            self._link.set_credit(CREDIT)

    def leave(self) -> None:
        """Take its credit back, settle what crosses that, go."""
        self._link.set_credit(0)
        self.client.step(0.2)
        self.move()
        self._link.close()
        self.client.wait(lambda: self._link.is_gone, "the answer to the detach")
        self.client.kill()


class Traffic:
    """Two producers of an address, and one consumer at a time; ``seen`` is what came to any, in order."""

    def __init__(self, mesh: RunningMesh, address: str, egress: str) -> None:
        self._mesh, self._address, self._egress = mesh, address, egress
        self._stack = ExitStack()
        self.producers = [
            Producer(self._client(router), address, name) for name, router in (("one", "r1"), ("two", "r2"))
        ]
        self.consumer: Consumer | None = None
        self.seen: list[str] = []

    def _client(self, router: str) -> WireClient:
        client = WireClient(self._mesh.port(router))
        self._stack.callback(client.kill)
        return client

    def end(self) -> None:
        self._stack.close()

    def attach(self) -> None:
        self.consumer = Consumer(self._client(self._egress), self._address, self.seen)

    def detach(self) -> None:
        assert self.consumer is not None
        self.consumer.leave()
        self.consumer = None

    def vanish(self) -> None:
        assert self.consumer is not None
        self.consumer.client.kill()
        self.consumer = None

    def send_more(self, count: int) -> None:
        for producer in self.producers:
            producer.send_more(count)

    def run_until(self, holds: Callable[[], bool], what: str, timeout_s: float = DONE_S) -> None:
        sides = [*self.producers, self.consumer] if self.consumer is not None else self.producers

        def move_and_look() -> bool:
            for each in sides:
                each.move()
            return holds()

        wait_with([each.client for each in sides], move_and_look, what, timeout_s)

    def run_until_done(self) -> None:
        self.run_until(lambda: all(each.is_done for each in self.producers), "an outcome of everything")

    def run_until_seen(self) -> None:
        """All that was accepted."""
        self.run_until(lambda: not self.missing, "all that was accepted")

    def run_until_more_is_seen(self, count: int) -> None:
        enough = len(self.seen) + count
        self.run_until(lambda: len(self.seen) > enough, f"{count} more")

    @property
    def accepted(self) -> list[str]:
        return [body for producer in self.producers for body in producer.accepted]

    @property
    def missing(self) -> set[str]:
        return set(self.accepted) - set(self.seen)

    def falls_back(self) -> bool:
        """As the routers of the producers see it."""
        return any(self._of(router)["is_falling_back"] for router in ("r1", "r2"))

    def _of(self, router: str) -> Any:
        addresses = self._mesh.snapshot(router)["node"]["addresses"]
        return next(each for each in addresses if (each["address"], each["phase"]) == (self._address, 0))

    def check_order(self) -> None:
        for producer in self.producers:
            found = producer.of(self.seen)
            assert found == sorted(found, key=lambda body: int(body.partition(":")[2]))
