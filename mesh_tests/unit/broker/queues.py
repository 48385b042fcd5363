"""Messages that queues are given in the tests, and what the queues say to it."""

from broker.queueing.action import Action, Deliver
from broker.queueing.message import QueuedMessage, QueueEntry

NOW = 100.0


def new_message(
    message_id: int, *, is_stored: bool = False, expires_at_s: float | None = None, priority: int = 4
) -> QueuedMessage:
    return QueuedMessage(message_id, 10, is_stored, expires_at_s=expires_at_s, priority=priority)


def stored(message_id: int, expires_at_s: float | None = None) -> QueuedMessage:
    message = new_message(message_id, is_stored=True, expires_at_s=expires_at_s)
    message.references = 1
    return message


def given(actions: list[Action]) -> list[tuple[int, int]]:
    return [(action.consumer_id, action.entry.message_id) for action in actions if isinstance(action, Deliver)]


def delivered(actions: list[Action]) -> list[QueueEntry]:
    return [action.entry for action in actions if isinstance(action, Deliver)]
