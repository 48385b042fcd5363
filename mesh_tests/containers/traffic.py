"""What became of each message that was sent while hosts were lost, and for how long did none arrive?"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

from mesh_tests.containers.container_mesh import ContainerMesh
from mesh_tests.live.wire_client import WireClient, wait_with
from wire.delivery import OutcomeCode
from wire.message import decode

CREDIT = 50
UNDER_WAY = 10
SOME = 20
WAIT_S = 30.0
LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class Sight:
    """A message as it came to the consumer."""

    at: float
    number: int
    delivery_count: int


class Stream:
    """Numbered messages from one client to another. None is sent a second time, whatever its producer heard."""

    def __init__(self, producer: WireClient, consumer: WireClient, address: str) -> None:
        self.clients = producer, consumer
        self.address = address
        self.sights: list[Sight] = []
        self._receiver = consumer.receiver(address, credit=CREDIT)
        self._sender = producer.sender(address)
        self._deliveries: list[int] = []
        self._takes = True

    def move(self, *, is_sending: bool) -> None:
        producer, consumer = self.clients
        if is_sending and self._sender.credit > 0 and len(self._deliveries) - len(producer.outcomes) < UNDER_WAY:
            self._deliveries.append(producer.send(self._sender, len(self._deliveries)))
        for each in consumer.settle_all():
            message = decode(each.data)
            self.sights.append(Sight(time.monotonic(), message.body, message.delivery_count))
        if self._takes and self._receiver.credit < CREDIT // 2:
            self._receiver.set_credit(CREDIT)

    def take(self, takes: bool) -> None:
        """False: the consumer wants nothing more for now."""
        self._takes = takes
        if not takes:
            self._receiver.set_credit(0)

    @property
    def is_stuck(self) -> bool:
        """Its producer waits for outcomes, and sends no more before it gets one."""
        return len(self._deliveries) - len(self.clients[0].outcomes) == UNDER_WAY

    @property
    def is_answered(self) -> bool:
        return len(self._deliveries) == len(self.clients[0].outcomes)

    @property
    def seen(self) -> set[int]:
        return {sight.number for sight in self.sights}

    @property
    def missing(self) -> set[int]:
        """Accepted, and not seen."""
        return self._with({OutcomeCode.ACCEPTED}) - self.seen

    @property
    def kinds(self) -> set[OutcomeCode]:
        """Of all outcomes."""
        return {self._kind(number) for number in range(len(self._deliveries))}

    def outage_s(self, since: float) -> float:
        """The longest time without an arrival."""
        times = [since, *(sight.at for sight in self.sights if sight.at > since)]
        return max(later - earlier for earlier, later in pairwise(times))

    def check(self, *, may_repeat: bool) -> None:
        """Nothing lost, and no duplicates: but that those who may repeat a message say so with it."""
        assert self.missing == set(), f"{self.address}: accepted and lost"
        assert self._with({OutcomeCode.RELEASED, OutcomeCode.REJECTED}) & self.seen == set(), (
            f"{self.address}: given back, and seen"
        )
        known: set[int] = set()
        for sight in self.sights:
            is_marked = may_repeat and sight.delivery_count > 0
            assert sight.number not in known or is_marked, f"{self.address}: came again, {sight}"
            known.add(sight.number)

    def _with(self, kinds: set[OutcomeCode]) -> set[int]:
        return {number for number in range(len(self._deliveries)) if self._kind(number) in kinds}

    def _kind(self, number: int) -> OutcomeCode | None:
        outcome = self.clients[0].outcomes.get(self._deliveries[number])
        return outcome.kind if outcome is not None else None


class Traffic:
    """From r1 to r3, all at once: an anycast, one that is sent again when in doubt, and a queue."""

    def __init__(self, mesh: ContainerMesh, name: str) -> None:
        self._stack = ExitStack()
        self.work, self.again, self.queue = self.streams = tuple(
            self._stream(mesh, kind, f"{kind}.{name}") for kind in ("work", "again", "queue")
        )
        self._is_sending = True

    def _stream(self, mesh: ContainerMesh, kind: str, address: str) -> Stream:
        def client(router: str) -> WireClient:
            return self._stack.enter_context(mesh.client(router, f"{kind} at {router}"))

        return Stream(client("r1"), client("r3"), address)

    def __enter__(self) -> Traffic:
        self._stack.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def run_until(self, holds: Callable[[], bool], what: str) -> None:
        """Nobody loses a link or a connection meanwhile."""
        clients = [client for stream in self.streams for client in stream.clients]

        def move_and_look() -> bool:
            for stream in self.streams:
                stream.move(is_sending=self._is_sending)
            return holds()

        wait_with(clients, move_and_look, what, WAIT_S)

    def run_until_known(self, holds: Callable[[], bool], what: str) -> None:
        """As often as one may ask a node."""
        next_look = time.monotonic()

        def holds_now() -> bool:
            nonlocal next_look
            if time.monotonic() < next_look:
                return False
            has_held = holds()
            next_look = time.monotonic() + LOOK_EVERY_S
            return has_held

        self.run_until(holds_now, what)

    def flow(self, *streams: Stream) -> None:
        """Until some more came of each of ``streams``, or of all."""
        goals = [(stream, len(stream.sights) + SOME) for stream in streams or self.streams]
        self.run_until(lambda: all(len(stream.sights) >= goal for stream, goal in goals), f"{SOME} more of each")

    def outage_s(self, since: float) -> float:
        """The longest of any stream."""
        return max(stream.outage_s(since) for stream in self.streams)

    def finish(self) -> None:
        """Send no more, wait for what is under way, and account for every message."""
        self._is_sending = False
        self.run_until(lambda: all(stream.is_answered for stream in self.streams), "all outcomes")
        self.run_until(lambda: not any(stream.missing for stream in self.streams), "all that was accepted")
        self.work.check(may_repeat=False)
        self.again.check(may_repeat=True)
        self.queue.check(may_repeat=True)
        assert self.again.kinds == {OutcomeCode.ACCEPTED}, "its producer heard of the loss"
        assert self.work.kinds <= {OutcomeCode.ACCEPTED, OutcomeCode.MODIFIED}, (
            "held for another path, it was given back"
        )
