"""Do others go on meanwhile? A client of another make that exchanges messages from before an offence until after it."""

from __future__ import annotations

import threading
from types import TracebackType

from proton import Message
from proton.utils import BlockingConnection

from mesh_tests.waiting import wait_until

PACE_S = 0.01
EXCHANGE_S = 30.0


class Bystander:
    """Sends and receives over one connection, in a thread, for as long as the context is open."""

    def __init__(self, url: str, address: str) -> None:
        self._url = url
        self._address = address
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bystander")
        self.exchanged = 0

    def __enter__(self) -> Bystander:
        self._thread.start()
        self.wait_more()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.wait_more()
        finally:
            self._is_over.set()
            self._thread.join(EXCHANGE_S)
        assert self._error is None, f"the bystander was hit: {self._error!r}"

    def wait_more(self, count: int = 3) -> None:
        """Until it exchanged ``count`` messages more on that same connection."""
        goal = self.exchanged + count
        wait_until(lambda: self._error or self.exchanged >= goal, EXCHANGE_S, "the bystander to exchange messages")

    def _run(self) -> None:
        try:
            connection = BlockingConnection(self._url, timeout=EXCHANGE_S)
            receiver = connection.create_receiver(self._address, credit=10)
            sender = connection.create_sender(self._address)
            while not self._is_over.wait(PACE_S):
                body = self.exchanged + 1
                # Not sender.send: that waits for the outcome, which the receiver below has to give.
                delivery = sender.link.send(Message(body))
                assert receiver.receive().body == body
                receiver.accept()
                connection.wait(lambda sent=delivery: sent.settled, timeout=EXCHANGE_S)
                assert delivery.remote_state == delivery.ACCEPTED
                delivery.settle()
                self.exchanged = body
            connection.close()
        except BaseException as error:  # noqa: BLE001 - told to the thread of the test
            self._error = error
