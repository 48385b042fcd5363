"""python-qpid-proton's BlockingConnection as a test client. Arguments and output are those that client.py describes."""

import sys
import time

from proton import Delivery, Message
from proton.reactor import Container, DurableSubscription
from proton.utils import BlockingConnection, SendException, SyncRequestResponse

TIMEOUT_S = 60
RETRY_S = 0.05


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def send(connection: BlockingConnection, options: dict[str, str]) -> None:
    sender = connection.create_sender(options["address"])
    say("attached")
    for sequence in range(1, int(options["count"]) + 1):
        send_until_accepted(sender, Message(id=sequence, durable=True, body={"sequence": sequence}))
        say(f"sequence={sequence}")
        time.sleep(int(options.get("pause_ms", 0)) / 1000)


def send_until_accepted(sender, message: Message) -> None:
    """A released or modified message comes back as an exception: send it again, as an application would.

    Left to itself, the library takes modified for a success.
    """
    while True:
        try:
            sender.send(message, error_states=[Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED])
        except SendException as error:
            if error.state == Delivery.REJECTED:
                raise
            say(f"again: {error}")
            time.sleep(RETRY_S)
        else:
            return


def receive(connection: BlockingConnection, options: dict[str, str]) -> None:
    name = options.get("subscription")
    receiver = connection.create_receiver(
        options["address"], credit=1, name=name, options=DurableSubscription() if name else None
    )
    say("attached")
    for _ in range(int(options["count"])):
        say(f"sequence={int(receiver.receive().body['sequence'])}")
        receiver.accept()
    if name:
        receiver.detach()


def request(connection: BlockingConnection, options: dict[str, str]) -> None:
    client = SyncRequestResponse(connection, options["address"])
    say("attached")
    for sequence in range(1, int(options["count"]) + 1):
        say(f"reply={client.call(Message(body=f'request {sequence}')).body}")


def respond(connection: BlockingConnection, options: dict[str, str]) -> None:
    requests = connection.create_receiver(options["address"], credit=1)
    anonymous = connection.create_sender(None)
    say("attached")
    for _ in range(int(options["count"])):
        message = requests.receive()
        reply = Message(address=message.reply_to, correlation_id=message.correlation_id, body=message.body.upper())
        anonymous.send(reply)
        requests.accept()


def main() -> None:
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    container = Container()
    container.container_id = options.get("container_id", container.container_id)
    connection = BlockingConnection(options["urls"], timeout=TIMEOUT_S, container=container)
    {"send": send, "receive": receive, "request": request, "respond": respond}[options["mode"]](connection, options)
    connection.close()
    say("done")


main()
