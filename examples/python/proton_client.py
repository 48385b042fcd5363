"""Sends to, or receives from, an address of a mesh with python-qpid-proton.

python proton_client.py send|receive [URL [ADDRESS [COUNT]]]
"""

import argparse
import sys
from urllib.parse import unquote, urlsplit

from proton import ConnectionException, Delivery, Message, Timeout
from proton.utils import BlockingConnection, LinkDetached, SendException

TIMEOUT_S = 10.0
NOT_ACCEPTED = [Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED]


def send(connection: BlockingConnection, address: str, count: int) -> None:
    sender = connection.create_sender(address)
    for number in range(1, count + 1):
        try:
            # Returns when the message is settled. Without error_states, released and modified count as success.
            sender.send(Message(durable=True, body=f"message {number}"), error_states=NOT_ACCEPTED)
        except SendException as error:
            sys.exit(f"error: message {number} of {count} was not accepted but {error.state.name.lower()}")
    print(f"sent {count}, all accepted")


def receive(connection: BlockingConnection, address: str, count: int) -> None:
    # Credit for one message: a message that comes and is not asked for any more would have to go back.
    receiver = connection.create_receiver(address, credit=1)
    for number in range(1, count + 1):
        try:
            print(receiver.receive(timeout=TIMEOUT_S).body)
        except Timeout:
            sys.exit(f"error: message {number} of {count} did not come within {TIMEOUT_S:g} s")
        # The mesh keeps the message, or its producer waits, until the message is accepted.
        receiver.accept()
    print(f"received {count}")


def connect(url: str) -> BlockingConnection:
    """Connect with the login beside the URL: proton's errors repeat the URL, and a password must not be shown."""
    where = urlsplit(url)
    login = {"user": unquote(where.username), "password": unquote(where.password or "")} if where.username else {}
    return BlockingConnection(f"{where.scheme}://{where.hostname}:{where.port or 5672}", timeout=TIMEOUT_S, **login)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["send", "receive"])
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672")
    parser.add_argument("address", nargs="?", default="orders")
    parser.add_argument("count", nargs="?", default=10, type=int)
    options = parser.parse_args()
    run = send if options.role == "send" else receive
    try:
        connection = connect(options.url)
        try:
            run(connection, options.address, options.count)
        finally:
            connection.close()
    except (ConnectionException, LinkDetached, Timeout) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
