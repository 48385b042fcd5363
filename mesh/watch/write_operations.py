"""The table of the changes that operators can ask for: routes, parsing, rights and OpenAPI are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from addressing.pattern import MAX_ADDRESS_CHARS
from addressing.topology.queries import MAX_COST
from recording.entities import ADDRESS, CONNECTION, LINK, NEIGHBOR, NODE, QUEUE, Entity

MAX_NUMBER: Final = 2**63 - 1
"""The largest number of a message that a broker gives."""
MAX_NUMBERS: Final = 1000
MAX_REASON_CHARS: Final = 500
MAX_TRACE_S: Final = 600
MAX_RECORD_S: Final = 60
MAX_TEXT_CHARS: Final = 4096
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


class MemberType(StrEnum):
    """Type of a member of a request's JSON object."""

    TEXT = "text"
    NUMBER = "number"
    """A whole number."""
    NUMBERS = "numbers"
    """A list of different whole numbers."""
    FLAG = "flag"
    MESSAGE = "message"
    """An AMQP message, as `wire.message_json` reads it."""


class NeededRight(StrEnum):
    """What an operator needs for a change."""

    ADDRESS = "address"
    """`manage` of the address, that of the queue if it is one, and of each other address that the request names."""
    MESH = "mesh"
    """`manage` of #."""


@dataclass(frozen=True, slots=True)
class WriteMember:
    """A member of a request's JSON object. ``least``, ``most``: of a number, of each of several, of a text's length.

    ``values``: all that a text may be; empty for any text.
    """

    name: str
    type: MemberType
    meaning: str
    is_needed: bool = False
    least: int = 0
    most: int = MAX_TEXT_CHARS
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteOperation:
    """A change of one ``entity``: ``method`` of HTTP, and the last segment of the path, empty for the entity itself.

    ``one_of``: members of which exactly one has to be given. ``counts``: the member of `would` and `done` in answers.
    ``lasting``: fields of the entity that `expect` may have; empty for all.
    """

    name: str
    entity: Entity
    action: str
    right: NeededRight
    meaning: str
    members: tuple[WriteMember, ...]
    counts: str
    method: str = "POST"
    one_of: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()

    @property
    def expected(self) -> tuple[str, ...]:
        """The fields of the entity that `expect` may have."""
        return self.lasting or self.entity.names

    def member(self, name: str) -> WriteMember | None:
        return next((member for member in self.members if member.name == name), None)

    @property
    def path(self) -> str:
        """The path with `{id}` for the entity's id."""
        return f"/api/{self.entity.plural}/{{id}}" + (f"/{self.action}" if self.action else "")


_UP_TO: Final = WriteMember(
    "up_to", MemberType.NUMBER, "number of the newest message that was shown: newer messages stay", most=MAX_NUMBER
)
_NUMBERS: Final = WriteMember("numbers", MemberType.NUMBERS, "numbers of the messages", most=MAX_NUMBER)
_COUNT: Final = WriteMember("count", MemberType.NUMBER, "the first so many messages", least=1, most=MAX_NUMBER)
_REASON: Final = WriteMember(
    "reason", MemberType.TEXT, "reason, which the peer is told", is_needed=True, least=1, most=MAX_REASON_CHARS
)


def _needed(member: WriteMember) -> WriteMember:
    return WriteMember(
        member.name, member.type, member.meaning, True, member.least, member.most, member.values
    )  # fmt: skip


WRITES: Final = (
    WriteOperation(
        "purge", QUEUE, "purge", NeededRight.ADDRESS,
        "Drops the messages that wait in the queue, up to the number that was shown.",
        (_needed(_UP_TO),), "messages",
    ),
    WriteOperation(
        "remove", QUEUE, "remove", NeededRight.ADDRESS,
        "Drops single messages. Messages that are with a consumer stay.",
        (_needed(_NUMBERS),), "messages",
    ),
    WriteOperation(
        "move", QUEUE, "move", NeededRight.ADDRESS,
        "Moves messages to another queue at the same broker.",
        (
            WriteMember("target", MemberType.TEXT, "address of the other queue", True, 1, MAX_ADDRESS_CHARS),
            _NUMBERS, _UP_TO, _COUNT,
        ),
        "messages", one_of=("numbers", "up_to", "count"),
    ),
    WriteOperation(
        "redrive", QUEUE, "redrive", NeededRight.ADDRESS,
        "Moves dead letters back to the queues that they came from, or to one queue.",
        (
            WriteMember("to", MemberType.TEXT, "address of the queue to move them to", False, 1, MAX_ADDRESS_CHARS),
            _NUMBERS, _COUNT,
        ),
        "messages",
    ),
    WriteOperation(
        "send", QUEUE, "send", NeededRight.ADDRESS,
        "Sends a message to the address of the queue through a router, such as an edited copy of another message.",
        (WriteMember("message", MemberType.MESSAGE, "the message", is_needed=True),), "messages",
    ),
    WriteOperation(
        "delete", QUEUE, "", NeededRight.ADDRESS,
        "Deletes the queue or subscription.",
        (WriteMember("force", MemberType.FLAG, "delete its messages, too; else a queue with messages stays"),),
        "messages", method="DELETE",
    ),
    WriteOperation(
        "close-connection", CONNECTION, "close", NeededRight.MESH,
        "Closes a connection; the peer may connect again.",
        (_REASON,), "connections",
    ),
    WriteOperation(
        "trace", CONNECTION, "trace", NeededRight.MESH,
        "Writes the frames of the connection for a time to a file that the answer names, without bodies of messages.",
        (WriteMember("seconds", MemberType.NUMBER, "seconds", True, 1, MAX_TRACE_S),), "connections",
    ),
    WriteOperation(
        "close-link", LINK, "close", NeededRight.MESH,
        "Detaches a link; the peer may attach it again.",
        (_REASON,), "links",
    ),
    WriteOperation(
        "cost", NEIGHBOR, "cost", NeededRight.MESH,
        "Sets the cost of the connection of two routers, at both, until one of them starts again.",
        (WriteMember("cost", MemberType.NUMBER, "cost; paths with a lower sum are taken", True, 1, MAX_COST),),
        "connections",
    ),
    WriteOperation(
        "log-level", NODE, "log-level", NeededRight.MESH,
        "Sets the lowest level of the events that the node writes to its log, until the node starts again.",
        (
            WriteMember("module", MemberType.TEXT, "module, such as router.routes; empty: of all modules", True, 0),
            WriteMember("level", MemberType.TEXT, "lowest level", True, values=LOG_LEVELS),
        ),
        "modules",
    ),
    WriteOperation(
        "record", ADDRESS, "record", NeededRight.ADDRESS,
        "Has all routers record, for a time, their decisions about deliveries of the address; it ends by itself, after "
        "the last one's time.",
        (WriteMember("seconds", MemberType.NUMBER, "seconds", True, 1, MAX_RECORD_S),), "routers",
        lasting=("id", "address", "pattern", "treatment"),
    ),
)  # fmt: skip
