"""The end of a connection or link by an operator's request: the operator, the reason, and the errors for the peer.

Spec: AMQP 1.0 [2.8.16] amqp:connection:forced, [2.8.18] amqp:link:detach-forced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wire.errors import ConnectionFault, LinkError

MOST_REASON_CHARS = 500
_SHOWN = 10
"""Most numbers that the text of an error lists."""


@dataclass(frozen=True, slots=True)
class ForcedEnd:
    """An operator's request to close a connection or link: ``operator`` is a user's name, ``reason`` any short text."""

    operator: str
    reason: str

    @property
    def sentence(self) -> str:
        """The description of the error for the peer."""
        return f"closed by the operator {self.operator}" + (f": {self.reason}" if self.reason else "")

    def of_connection(self) -> ConnectionFault:
        return ConnectionFault("amqp:connection:forced", self.sentence)

    def of_link(self) -> LinkError:
        return LinkError("amqp:link:detach-forced", self.sentence)


def unknown_number(what: str, number: int, known: Iterable[int]) -> ValueError:
    """Return the error for a ``number`` that is not among the ``known`` numbers of open connections or links.

    ``what`` names the things that are numbered, such as "connection of r1".
    """
    numbers = sorted(known)
    few = ", ".join(map(str, numbers[:_SHOWN])) + (f" and {len(numbers) - _SHOWN:,} more" if numbers[_SHOWN:] else "")
    return ValueError(f"there is no {what} with number {number}: expected " + (few or "none, since none is open now"))
