"""An operator at the control address of a rig's broker."""

from __future__ import annotations

import json
from typing import Any

from addressing.address import CONTROL_ADDRESS
from mesh_tests.unit.broker.rig import Consumer, Rig
from wire.delivery import ACCEPTED, Outcome
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}


def subscribe(rig: Rig, name: str, filter_: str = "news.#") -> str:
    """A durable subscription whose subscriber is away; as an operator names it."""
    rig.client("reader").consumer(filter_, name=name, **DURABLE).detach()
    return f"reader|{name}"


class Operator:
    def __init__(self, rig: Rig, container_id: str = "operator") -> None:
        self.client = rig.client(container_id)
        self._requests = self.client.producer(CONTROL_ADDRESS, "requests")
        self.answers = self._source()
        self.reply_to = self.answers.link.remote_source.address
        self._rig = rig

    def _source(self) -> Consumer:
        return self.client.consumer(None, name="answers", is_dynamic=True)

    def send(self, body: Any, **fields: Any) -> Outcome | None:
        """What became of the request itself."""
        number = self._requests.send(body, **{"reply_to": self.reply_to, "message_id": 7, **fields})
        return self._requests.outcomes.get(number)

    def ask(self, op: str, **arguments: Any) -> list[dict[str, Any]]:
        """The parts of the answer."""
        seen = len(self.answers.received)
        assert self.send(json.dumps({"op": op, **arguments})) == ACCEPTED
        new = self.answers.received[seen:]
        for received in new:
            assert received.message.correlation_id == 7
            received.give(ACCEPTED)
        return [json.loads(received.message.body) for received in new]

    def do(self, op: str, **arguments: Any) -> list[dict[str, Any]]:
        """What the parts of a good answer say."""
        parts = self.ask(op, **arguments)
        assert [part["more"] for part in parts] == [True] * (len(parts) - 1) + [False], parts
        assert all(part["ok"] for part in parts), parts
        return [part[op] for part in parts]

    def count(self, op: str, **arguments: Any) -> int:
        return sum(part["messages"] for part in self.do(op, **arguments))

    def refusal(self, op: str, **arguments: Any) -> str:
        (answer,) = self.ask(op, **arguments)
        assert not answer["ok"]
        assert not answer["more"]
        return str(answer["error"])
