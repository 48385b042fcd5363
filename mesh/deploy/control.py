"""The control socket of a node or of the supervisor: a request is one line of JSON, and so is the answer.

The answer to ``cost`` is the cost of the link before the change. ``relist`` has the node write all that it has at
present into its ring, as records with event `live`, and behind them a record of the node with event `listed`; the
answer is the number of the slot of the ring, counted from its start, from which on these records follow. A request
that comes before the last record shares the list, and has the same answer. ``close_connection`` and ``close_link`` take
the numbers of the records; ``operator`` (default: owner) and ``reason`` stand in the error that the peer gets.

{"op": "snapshot"}                           ->  {"ok": true, "snapshot": {...}}
{"op": "memory", "collect": true}            ->  {"ok": true, "memory": {"resident_bytes": 58720256, ...}}
{"op": "cost", "neighbor": "r2", "cost": 5}  ->  {"ok": true, "cost": 1}
{"op": "relist"}                             ->  {"ok": true, "relist": 81922}
{"op": "close_connection", "connection": 7, "operator": "alice", "reason": "leak"}
                                             ->  {"ok": true, "close_connection": {"connection": 7}}
{"op": "close_link", "connection": 7, "link": 12, "reason": "stuck"}
                                             ->  {"ok": true, "close_link": {"connection": 7, "link": 12}}
{"op": "log_level", "module": "router.routes", "level": "debug"}
                                             ->  {"ok": true, "log_level": {..., "before": "info"}}
{"op": "log_levels"}                         ->  {"ok": true, "log_levels": {"": "info", "router.routes": "debug"}}
{"op": "trace", "connection": 7, "seconds": 30}
                                             ->  {"ok": true, "trace": {"connection": 7, "file": "...", "seconds": 30}}
{"op": "record_decisions", "address": "orders", "seconds": 60}
                          ->  {"ok": true, "record_decisions": {"address": "orders", "seconds": 60, "after": 12}}
{"op": "decisions", "address": "orders", "after": 0}
                                             ->  {"ok": true, "decisions": {"next": 17, "decisions": [...], ...}}
{"op": "nonsense"}                           ->  {"ok": false, "error": "unknown op 'nonsense': ..."}
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import socket
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from mesh.deploy.workdir import SocketPath

Handler = Callable[[Mapping[str, Any]], Any]
"""Takes a whole request and returns the answer. Raises ValueError for a bad request; its text becomes the answer."""
MAX_REQUEST_BYTES = 64 * 1024


class ControlServer:
    """Answers requests on a Unix socket: `op` names the handler, and the answer has the handler's result under `op`."""

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self._path = path
        self._handlers = handlers
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        # The mode of a socket before its bind is the mode of its file: no other user may ever connect.
        os.fchmod(listening.fileno(), 0o600)
        try:
            with SocketPath(self._path) as short:
                listening.bind(short)
            self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=MAX_REQUEST_BYTES)
        except OSError:
            listening.close()
            raise

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(encode(self._answer(line)))
                await writer.drain()
        except (ConnectionError, ValueError):
            # The client went away, or sent a line longer than MAX_REQUEST_BYTES, which gets no answer: the connection
            # is closed.
            pass
        finally:
            writer.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            op = request["op"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"ok": False, "error": 'expected one line of JSON such as {"op": "snapshot"}'}
        if not isinstance(op, str) or op not in self._handlers:
            return {"ok": False, "error": f"unknown op {op!r}: expected one of {', '.join(sorted(self._handlers))}"}
        try:
            return {"ok": True, op: self._handlers[op](request)}
        except ValueError as error:
            return {"ok": False, "error": str(error)}


class RequestRefused(OSError):
    """The node or supervisor refused a request at its control socket; the message is the error text in the answer."""


def ask(path: Path, op: str, *, timeout_s: float = 2.0, **arguments: Any) -> Any:
    """Send the request ``op`` to the node or supervisor whose control socket is ``path``, and return the answer.

    Raises OSError if no process listens there, or none answers within ``timeout_s``; RequestRefused, an OSError as
    well, if the node or supervisor refuses the request.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        with SocketPath(path) as short:
            connection.connect(short)
        connection.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
        with connection.makefile("rb") as answers:
            line = answers.readline()
    return decode(line, op)


async def ask_async(path: Path, op: str, *, timeout_s: float = 2.0, **arguments: Any) -> Any:
    """As `ask`, for a program in an event loop."""
    async with asyncio.timeout(timeout_s):
        with SocketPath(path) as short:
            reader, writer = await asyncio.open_unix_connection(short, limit=1 << 26)
        try:
            writer.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
            return decode(await reader.readline(), op)
        finally:
            writer.close()


def decode(line: bytes, op: str) -> Any:
    if not line:
        raise ConnectionResetError(f"the connection to the control socket ended before the answer to {op!r}")
    answer = json.loads(line)
    if not answer["ok"]:
        raise RequestRefused(answer["error"])
    return answer[op]


def encode(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(to_plain(answer), ensure_ascii=False).encode() + b"\n"


def to_plain(value: Any) -> Any:
    """Convert a snapshot and all its parts to JSON values; a tuple as a key becomes one string, joined by spaces."""
    match value:
        case None | bool() | int() | float() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return value.name.lower()
        case bytes():
            return value.hex()
        case Mapping():
            return {_key(key): to_plain(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(map(str, value))
        case list() | tuple():
            return [to_plain(item) for item in value]
        case _ if dataclasses.is_dataclass(value):
            return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return str(value)


def _key(key: Any) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
