"""A proton client with very many links over one connection, in a thread of its own."""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

_POLL_S = 0.02


class ManyLinks(MessagingHandler):
    """A sender and a receiver for each of ``addresses``, which may repeat, all in one session: proton's default.

    A message is known by the number of its sender. A message in doubt is sent again.
    """

    def __init__(self, url: str, addresses: list[str]) -> None:
        super().__init__(prefetch=10, auto_accept=True)
        self.attached: set[str] = set()
        self.ended: list[tuple[str, Any]] = []
        """Name and condition of each link that the router ended."""
        self.accepted: Counter[int] = Counter()
        self.arrived: Counter[int] = Counter()
        self.others: list[Any] = []
        """Outcomes that are neither accepted nor in doubt."""
        self._url = url
        self._addresses = addresses
        self._senders: list[Any] = []
        self._numbers: dict[str, int] = {}
        self._due: Counter[int] = Counter()
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = Thread(target=Container(self).run, daemon=True)
        self._thread.start()

    def send(self, numbers: Iterable[int]) -> None:
        """Send a message over each sender of ``numbers``, as soon as it has credit."""
        chosen = list(numbers)
        self._calls.put(lambda: self._send(chosen))

    def close(self) -> None:
        self._calls.put(lambda: self._connection.close())
        self._thread.join(30)

    # In the client's thread
    def on_start(self, event: Any) -> None:
        container = event.container
        self._connection = container.connect(self._url, reconnect=False)
        for number, address in enumerate(self._addresses):
            container.create_receiver(self._connection, address, name=f"from {number}")
            self._senders.append(container.create_sender(self._connection, address, name=f"to {number}"))
            self._numbers[f"to {number}"] = number
        container.schedule(_POLL_S, self)

    def on_timer_task(self, event: Any) -> None:
        while not self._calls.empty():
            self._calls.get()()
        if self._is_open():
            event.container.schedule(_POLL_S, self)

    def _is_open(self) -> bool:
        return bool(self._connection.state & self._connection.LOCAL_ACTIVE)

    def _send(self, numbers: list[int]) -> None:
        for number in numbers:
            self._due[number] += 1
            self._send_due(number)

    def _send_due(self, number: int) -> None:
        sender = self._senders[number]
        while self._due[number] and sender.credit > 0:
            self._due[number] -= 1
            sender.send(Message(body=number, durable=True))

    def on_sendable(self, event: Any) -> None:
        self._send_due(self._numbers[event.link.name])

    def on_link_opened(self, event: Any) -> None:
        self.attached.add(event.link.name)

    def on_link_remote_detach(self, event: Any) -> None:
        self._note_end(event.link)

    def on_link_remote_close(self, event: Any) -> None:
        self._note_end(event.link)

    def _note_end(self, link: Any) -> None:
        if self._is_open():
            self.ended.append((link.name, link.remote_condition))

    def on_settled(self, event: Any) -> None:
        if event.link.is_receiver:
            return
        number, state = self._numbers[event.link.name], event.delivery.remote_state
        if state == event.delivery.ACCEPTED:
            self.accepted[number] += 1
        elif state == event.delivery.MODIFIED:
            self._send([number])
        else:
            self.others.append(state)

    def on_message(self, event: Any) -> None:
        self.arrived[event.message.body] += 1
