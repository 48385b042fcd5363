"""Sends to, or receives from, an address of a mesh with asyncio and amqpmesh's own client library.

python mesh_client.py send|receive [URL [ADDRESS [COUNT]]]
"""

import argparse
import asyncio
import sys

from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.errors import MeshError
from mesh.client.server import Server
from mesh.client.url import parse_url
from wire.message import Message, decode, encode
from wire.outcome import ACCEPTED, OutcomeCode
from wire.sasl import SaslClientSettings

TIMEOUT_S = 10.0


async def send(client: Client, address: str, count: int) -> None:
    sender = await client.sender(address)
    # `send` waits for credit and returns a future: all messages are on their way before the first outcome is awaited.
    outcomes = [await sender.send(encode(Message(f"message {n}", durable=True))) for n in range(1, count + 1)]
    for number, outcome in enumerate(outcomes, start=1):
        told = await outcome
        if told is None or told.kind is not OutcomeCode.ACCEPTED:
            found = told.kind.name.lower() if told is not None else "settled without an outcome"
            sys.exit(f"error: message {number} of {count} was not accepted but {found}")
    print(f"sent {count}, all accepted")


async def receive(client: Client, address: str, count: int) -> None:
    receiver = await client.receiver(address)
    for number in range(count):
        receiver.top_up(count - number)
        message = await receiver.receive()
        print(decode(message.data).body)
        receiver.settle(message, ACCEPTED)
    print(f"received {count}")


async def run(role: str, url: str, address: str, count: int) -> None:
    where = parse_url(url, needs_address=False)
    server = Server(where.host or "127.0.0.1", where.port or 5672, sasl=SaslClientSettings(where.user, where.password))
    async with connected(server, TIMEOUT_S) as client, asyncio.timeout(TIMEOUT_S):
        await (send if role == "send" else receive)(client, address, count)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["send", "receive"])
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672")
    parser.add_argument("address", nargs="?", default="orders")
    parser.add_argument("count", nargs="?", default=10, type=int)
    options = parser.parse_args()
    try:
        asyncio.run(run(**vars(options)))
    except (MeshError, ValueError) as error:
        sys.exit(f"error: {error}")
    except TimeoutError:
        sys.exit(f"error: {options.count} messages of {options.address} took longer than {TIMEOUT_S:g} s")


if __name__ == "__main__":
    main()
