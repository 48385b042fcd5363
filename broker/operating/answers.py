"""The answers of a broker to an operator: parts, steps without an answer, and refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from broker.addresses import BrokerAddressKind
from broker.queueing.held_queue import HeldQueue
from broker.queueing.look import Look


class AdministrationError(ValueError):
    """The error of a refused request of an operator: its text tells people the reason, and ``code`` tells programs.

    ``code`` is None for most reasons.
    """

    code: str | None = None


class QueueNotCreated(AdministrationError):
    """The error of a request for a queue that the topology has on this broker, and that nobody used or created yet."""

    code = "not-made-yet"


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Part of the answer to an operator, as the fields of a JSON object; all parts but the last have ``has_more``."""

    fields: Mapping[str, Any]
    has_more: bool = False


Parts = Iterator[AnswerPart]
Steps = Iterator[AnswerPart | Look | None]
"""The steps of an operation: a part of the answer, or a Look whose bodies have to be read before the next step, or None
after a step without either."""


def kind_of(held: HeldQueue) -> str:
    if held.is_subscription:
        return "subscription"
    if held.is_durable:
        return "queue"
    return str((BrokerAddressKind.PROBE if held.is_probe else BrokerAddressKind.TEMPORARY).value)


def name_of(held: HeldQueue) -> str:
    """Return a queue's or subscription's name in sentences for people."""
    if held.subscriber is not None:
        return f"the subscription of {held.subscriber} to {held.address!r}"
    return f"{kind_of(held)} {held.address!r}"


def refuse_deleted(held: HeldQueue) -> None:
    if held.is_deleted:
        raise AdministrationError(f"{name_of(held)} was deleted while the operation went on")
