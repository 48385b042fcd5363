"""What the observer asks of the nodes of its mesh to change them; and how their failures are answered over HTTP.

The program of the observer brings the functions: `mesh.operations.observer_requests`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.deploy.control import RequestRefused
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import as_failure
from mesh.watch.write_request import WriteRefused

SHOWS = "`amqpmesh status` shows which nodes run, and `amqpmesh up` starts them."


class MeshRequests(Protocol):
    """Requests to nodes; none of them blocks the event loop."""

    async def ask_broker(self, broker: str, request: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        """Append the parts of the answer of an embedded broker to ``parts``. Raises MeshError."""

    async def ask_node(self, node: str, op: str, **arguments: Any) -> Any:
        """Return the answer at the control socket of a node of this host. Raises OSError, RequestRefused among them."""

    async def send(self, routers: Sequence[str], address: str, message: bytes) -> str:
        """Send an encoded message through the first of ``routers`` that answers; return the router. Raises MeshError.

        An outcome other than accepted is a CommandFailed.
        """


@contextmanager
def refused_by(node: str, *, is_begun: bool) -> Iterator[None]:
    """Turn failures of requests to ``node`` into WriteRefused.

    ``is_begun``: the request changes something, and an earlier one was answered: when the node is lost now, the change
    may have been made.
    """
    try:
        yield
    except RequestRefused as error:
        raise WriteRefused(409, f"{node}: {error}") from None
    except TimeoutError:
        raise WriteRefused(504, f"{node} runs, but did not answer in time. {SHOWS}", is_uncertain=is_begun) from None
    except OSError as error:
        is_gone = isinstance(error, (FileNotFoundError, ConnectionRefusedError))
        raise WriteRefused(
            502, f"{node} does not run on this host, or ended before its answer. {SHOWS}",
            is_uncertain=is_begun and not is_gone,
        ) from None  # fmt: skip
    except TimedOut as error:
        raise WriteRefused(504, f"{node}: {error.message}. {SHOWS}", is_uncertain=is_begun) from None
    except MeshError as error:
        fix = f" {error.fix}" if error.fix else f" {SHOWS}"
        if isinstance(error, Unreachable) or as_failure(error).exit_code is ExitCode.UNREACHABLE:
            raise WriteRefused(502, f"{node}: {error.message}.{fix}", is_uncertain=is_begun) from None
        raise WriteRefused(409, f"{node}: {error.message}") from None
