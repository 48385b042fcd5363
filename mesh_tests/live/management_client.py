"""A client of `$management` that sends requests as Dispatch's tools do: over proton, and without a SASL layer.

An answer is compared with docs/reference/management.md: the attributes of each type, in order, with their AMQP types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import proton
from proton.utils import BlockingConnection, SyncRequestResponse

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "management.md"
PREFIX = "org.apache.qpid.dispatch."
WAIT_S = 20.0
# The engine's bindings give strings as str, longs as int, and booleans as bool.
PYTHON_TYPES: dict[str, type] = {
    "string": str, "boolean": bool, "int": proton.int32, "uint": proton.uint, "long": int, "ulong": proton.ulong,
    "list of string": list, "map": dict,
}  # fmt: skip


class ManagementClient:
    """Sends requests to ``address`` over a connection to ``url``, and returns the answers."""

    def __init__(self, url: str, address: str = "$management", **connection: Any) -> None:
        self.connection = BlockingConnection(url, **{"timeout": WAIT_S, "sasl_enabled": False, **connection})
        try:
            self._calls = SyncRequestResponse(self.connection, address)
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> ManagementClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.connection.close()

    def ask(self, operation: str, body: Any = None, **properties: Any) -> proton.Message:
        request = proton.Message({} if body is None else body)
        request.properties = {"operation": operation, **properties}
        return self._calls.call(request)

    def call(self, operation: str, body: Any = None, **properties: Any) -> Any:
        """Return the body of the answer, whose status has to be OK."""
        answer = self.ask(operation, body, **properties)
        assert answer.properties["statusCode"] == 200, answer.properties
        return answer.body

    def error(self, operation: str, body: Any = None, **properties: Any) -> tuple[int, str]:
        """Return the status of an answer that is not OK, and its sentence."""
        answer = self.ask(operation, body, **properties)
        assert answer.properties["statusCode"] != 200, answer.body
        return int(answer.properties["statusCode"]), str(answer.properties["statusDescription"])

    def query(self, type_: str, *names: str, **page: int) -> list[dict[str, Any]]:
        """Return the entities of a type, as Dispatch's own client asks for them."""
        body = {"attributeNames": list(names)}
        found = self.call("QUERY", body, type="org.amqp.management", name="self", entityType=type_, **page)
        return [dict(zip(found["attributeNames"], row, strict=True)) for row in found["results"]]


@contextmanager
def managing(url: str, address: str = "$management", **connection: Any) -> Iterator[ManagementClient]:
    with ManagementClient(url, address, **connection) as client:
        yield client


def reference() -> dict[str, dict[str, str]]:
    """Return the AMQP types by attribute, by entity type, of the reference."""
    found: dict[str, dict[str, str]] = {}
    for line in REFERENCE.read_text().splitlines():
        if heading := re.match(r"### `(.+)`", line):
            found[heading[1]] = {}
        elif (row := re.match(r"\| `(\w+)` \| ([a-z ]+) \|", line)) and found:
            found[list(found)[-1]][row[1]] = row[2]
    return found


def assert_as_in_reference(type_: str, entity: dict[str, Any]) -> None:
    expected = reference()[type_]
    assert list(entity) == list(expected)
    wrong = {
        name: (type(value), expected[name])
        for name, value in entity.items()
        if value is not None and type(value) is not PYTHON_TYPES[expected[name]]
    }
    assert not wrong
