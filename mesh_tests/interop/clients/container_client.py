"""python-qpid-proton's Container as a test client. Arguments and output are those that client.py describes."""

import sys
from collections import deque
from itertools import count

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Backoff, Container, DurableSubscription

MAX_RECONNECTS_S = 0.2


class Client(MessagingHandler):
    prefetch = 10

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(prefetch=self.prefetch, auto_settle=True)
        self.options = options
        self.address = options["address"]
        self.count = int(options["count"])

    def on_start(self, event) -> None:
        urls = self.options["urls"].split(",")
        reconnect = Backoff(initial=0.05, max_delay=MAX_RECONNECTS_S) if len(urls) > 1 else False
        self.connection = event.container.connect(urls=urls, reconnect=reconnect)
        self.attach(event.container)

    def on_link_opened(self, event) -> None:
        say("attached")

    def on_link_error(self, event) -> None:
        self.fail(event.link.remote_condition)

    def on_transport_error(self, event) -> None:
        if "," not in self.options["urls"]:
            self.fail(event.transport.condition)

    def on_rejected(self, event) -> None:
        self.fail(event.delivery.remote.condition)

    def fail(self, reason) -> None:
        say(f"failed: {reason}")
        sys.stdout.flush()
        sys.exit(1)

    def finish(self) -> None:
        self.connection.close()
        say("done")


class Sender(Client):
    def attach(self, container: Container) -> None:
        self.waiting = deque(range(1, self.count + 1))
        self.unsettled: dict[str, int] = {}
        self.tags = count()
        self.confirmed = 0
        self.is_attached = self.is_pausing = False
        self.sender = container.create_sender(self.connection, self.address)

    def on_link_opened(self, event) -> None:
        super().on_link_opened(event)
        self.is_attached = True

    def on_sendable(self, event) -> None:
        self.send_next(event.container)

    def on_timer_task(self, event) -> None:
        self.is_pausing = False
        self.send_next(event.container)

    def send_next(self, container: Container) -> None:
        while self.can_send() and self.waiting:
            sequence = self.waiting.popleft()
            # One number for each attempt: the engine hands what it still holds to the next connection by itself.
            tag = str(next(self.tags))
            self.sender.send(Message(id=sequence, durable=True, body={"sequence": sequence}), tag=tag)
            self.unsettled[tag] = sequence
            if pause_ms := int(self.options.get("pause_ms", 0)):
                self.is_pausing = True
                container.schedule(pause_ms / 1000, self)

    def can_send(self) -> bool:
        """The link keeps its credit when the connection is lost."""
        return self.is_attached and self.sender.credit > 0 and not self.is_pausing

    def on_accepted(self, event) -> None:
        sequence = self.unsettled.pop(event.delivery.tag, None)
        if sequence is None:
            return
        say(f"sequence={sequence}")
        self.confirmed += 1
        if self.confirmed == self.count:
            self.finish()

    def on_released(self, event) -> None:
        if event.delivery.tag in self.unsettled:
            self.waiting.append(self.unsettled.pop(event.delivery.tag))
            self.send_next(event.container)

    on_modified = on_released

    def on_disconnected(self, event) -> None:
        self.is_attached = False
        self.waiting.extend(self.unsettled.values())
        self.unsettled.clear()


class Receiver(Client):
    prefetch = 0  # the handler accepts whatever comes: it gets credit for what is still wanted and no more

    def attach(self, container: Container) -> None:
        self.received = 0
        self.subscription = self.options.get("subscription")
        self.receiver = container.create_receiver(
            self.connection,
            self.address,
            name=self.subscription,
            options=DurableSubscription() if self.subscription else None,
        )

    def on_link_opened(self, event) -> None:
        super().on_link_opened(event)
        event.receiver.flow(self.count - self.received)

    def on_message(self, event) -> None:
        say(f"sequence={int(event.message.body['sequence'])}")
        self.received += 1
        if self.received == self.count:
            self.accept(event.delivery)
            if self.subscription:
                self.receiver.detach()
            self.finish()


class Requester(Client):
    def attach(self, container: Container) -> None:
        self.next = 1
        self.sender = container.create_sender(self.connection, self.address)
        self.replies = container.create_receiver(self.connection, None, dynamic=True)

    def on_link_opened(self, event) -> None:
        if event.receiver == self.replies:
            say("attached")
            self.ask()

    def ask(self) -> None:
        reply_to = self.replies.remote_source.address
        self.sender.send(Message(reply_to=reply_to, correlation_id=f"c{self.next}", body=f"request {self.next}"))

    def on_message(self, event) -> None:
        assert event.message.correlation_id == f"c{self.next}"
        say(f"reply={event.message.body}")
        self.next += 1
        if self.next > self.count:
            self.finish()
        else:
            self.ask()


class Responder(Client):
    def attach(self, container: Container) -> None:
        self.answered = 0
        self.requests = container.create_receiver(self.connection, self.address)
        self.anonymous = container.create_sender(self.connection, None)

    def on_link_opened(self, event) -> None:
        if event.receiver == self.requests:
            say("attached")

    def on_message(self, event) -> None:
        request = event.message
        reply = Message(address=request.reply_to, correlation_id=request.correlation_id, body=request.body.upper())
        self.anonymous.send(reply)

    def on_accepted(self, event) -> None:
        if event.link == self.anonymous:
            self.answered += 1
            if self.answered == self.count:
                self.finish()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    roles = {"send": Sender, "receive": Receiver, "request": Requester, "respond": Responder}
    container = Container(roles[options["mode"]](options))
    if "container_id" in options:
        container.container_id = options["container_id"]
    container.run()


main()
