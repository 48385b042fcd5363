from dataclasses import dataclass

from addressing.filter_set import FilterSet
from addressing.queue_policy import QueuePolicy
from broker.queueing.queue import Queue, QueueSnapshot
from broker.queueing.subscribers import SubscriptionKey
from broker.store.batch import QueueRow
from recording.records import Recorder
from wire.core import DeliveryOwner

@dataclass(frozen=True, slots=True)
class QueueSummary:
    address: str
    is_subscription: bool
    is_durable: bool
    subscriber: str | None
    queue: QueueSnapshot
    waiting_count: int
    """Number of producers without credit, for want of room in the queue."""
    waiting_s: float
    """The longest time that one of these producers has waited."""

class QueueTaker(DeliveryOwner):
    @property
    def consumer_id(self) -> int: ...

class QueueProducer(DeliveryOwner): ...

class HeldQueue:
    number: int
    record_level: int
    def rest(self) -> None: ...
    row: QueueRow | None
    owner: str | None
    producer_count: int
    taker_count: int
    use_due_s: float
    def __init__(
        self,
        address: str,
        queue: Queue,
        recorder: Recorder,
        row: QueueRow | None = None,
        key: SubscriptionKey | None = None,
        is_subscription: bool = False,
        is_probe: bool = False,
        policy: QueuePolicy = ...,
        owner: str | None = None,
        filter_set: FilterSet | None = None,
    ) -> None: ...
    @property
    def filter_set(self) -> FilterSet | None: ...
    @property
    def free_count(self) -> int: ...
    @property
    def free_bytes(self) -> int: ...
    def add_consumer(self, taker: QueueTaker) -> None: ...
    def drop_consumer(self, taker: QueueTaker) -> None: ...
    @property
    def address(self) -> str: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def policy(self) -> QueuePolicy: ...
    @property
    def key(self) -> SubscriptionKey | None: ...
    @property
    def is_subscription(self) -> bool: ...
    @property
    def has_wildcards(self) -> bool: ...
    @property
    def is_probe(self) -> bool: ...
    @property
    def is_deleted(self) -> bool: ...
    def summary(self, now: float) -> QueueSummary: ...
    @property
    def coming_count(self) -> int: ...
    @property
    def subscriber(self) -> str | None: ...
    @property
    def is_durable(self) -> bool: ...
    @property
    def is_written(self) -> bool: ...
    @property
    def is_temporary(self) -> bool: ...
    @property
    def is_forsaken(self) -> bool: ...
