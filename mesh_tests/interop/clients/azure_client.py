"""The AMQP library inside Azure's Service Bus client as a test client. Arguments and output: as client.py describes.

It attaches as that client does, snd-settle-mode unsettled and rcv-settle-mode second, and waits until each message that
it sent is settled. The classes are private to the package, but nothing else of it talks to a broker without a cloud.
"""

import sys

from azure.servicebus._pyamqp import ReceiveClient, SendClient
from azure.servicebus._pyamqp.message import Message
from azure.servicebus._pyamqp.sasl import SASLAnonymousCredential

PATIENCE_S = 30


class Anonymous:
    auth_type = "AUTH_SASL_ANONYMOUS"
    sasl = SASLAnonymousCredential()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def send(where: dict[str, object], address: str, count: int) -> None:
    with SendClient(target=address, **where) as client:
        while not client.client_ready():
            pass
        say("attached")
        for sequence in range(1, count + 1):
            client.send_message(Message(value={"sequence": sequence}), timeout=PATIENCE_S)
            say(f"sequence={sequence}")


def receive(where: dict[str, object], address: str, count: int) -> None:
    with ReceiveClient(source=address, link_credit=count, **where) as client:
        while not client.client_ready():
            pass
        say("attached")
        for _ in range(count):
            while client._received_messages.empty():
                client.do_work(batch=1)
            frame, message = client._received_messages.get_nowait()
            say(f"sequence={message.value[b'sequence']}")
            client.settle_messages(frame[1], frame[2], "accepted")


def main() -> None:
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    host = options["urls"].removeprefix("amqp://")
    where = {"hostname": host, "auth": Anonymous(), "use_tls": False}
    {"send": send, "receive": receive}[options["mode"]](where, options["address"], int(options["count"]))
    say("done")


main()
