"""The filter sets of a client's multicast consumers, and the control links over which the client changes them.

A set belongs to the link of a receiver, and a control link finds it by the same name. The receiver's attach is
answered, and a change is accepted, once the set is in effect at every router concerned (`router.in_effect`).
"""

from __future__ import annotations

from addressing.book import AddressPolicy
from addressing.filter_set import FilterChange
from router.connections.unstitched import UnstitchedOwner
from router.distribution.set_consumers import SetConsumer, SetConsumers
from router.distribution.waiting_consumer import WaitingConsumer
from router.in_effect import ChangesInEffect
from wire.delivery import ACCEPTED, Outcome, rejected
from wire.engine import Pointer
from wire.errors import AmqpError, LinkError
from wire.filter_change import CHANGE_BYTES, CREDIT, read_change, wanted_filter_set
from wire.filter_set import filter_set_of
from wire.link import IncomingLink, Link, OutgoingLink
from wire.request_link import LaterOutcome, RequestLink
from wire.terminus import source

_OVER = LinkError("amqp:resource-deleted", "the receiver with the filter set has ended")
_STOLEN = LinkError("amqp:link:stolen", "another control link of the same name took the place of this one")


class _ClientSet:
    """A receiver with a set: ``address`` as the client wrote it. ``control`` is the present control link, if any.

    ``waiting``: the number of changes made that have no outcome yet, since they are not in effect everywhere.
    """

    __slots__ = ("address", "consumer", "control", "waiting")

    def __init__(self, address: str, consumer: SetConsumer) -> None:
        self.address = address
        self.consumer = consumer
        self.control: IncomingLink | None = None
        self.waiting = 0


class MulticastSets:
    """The filter sets of the multicast consumers of one client connection, by the names of the receivers' links."""

    __slots__ = ("_consumers", "_in_effect", "_sets")

    def __init__(self, consumers: SetConsumers, in_effect: ChangesInEffect) -> None:
        self._consumers = consumers
        self._in_effect = in_effect
        self._sets: dict[str, _ClientSet] = {}

    # Receivers
    def attach(self, link: OutgoingLink, policy: AddressPolicy) -> bool:
        """Attach a receiver of multicasts if its source, whose address has wildcards, has a filter set; else say False.

        The attach is answered once the set is in effect. Raises AmqpError for a set that is refused.
        """
        wanted = link.remote_source
        filter_set = wanted_filter_set(wanted, has_wildcards=True)
        if filter_set is None:
            return False
        link.copy_target(link)
        link.settle_as_asked()
        answered = {"capabilities": wanted.capabilities, "outcomes": wanted.outcomes, "filter": filter_set_of(wanted)}
        link.set_source(source(wanted.address, **answered))
        link.check_fits()
        consumer = self._consumers.add(policy, filter_set)
        known = self._sets[link.name] = _ClientSet(wanted.address or "", consumer)
        consumer.on_over = lambda: self._on_over(link.name, known)
        if not filter_set.filters:
            consumer.take(link)
            return True
        waiting = WaitingConsumer(link, lambda _: self._consumers.end(consumer.group))
        waiting.begin()
        self._in_effect.wait(lambda: self._answer(link, waiting, consumer))
        return True

    @staticmethod
    def _answer(link: OutgoingLink, waiting: WaitingConsumer, consumer: SetConsumer) -> None:
        if link.owner is waiting and not (link.is_gone or link.has_left or link.has_peer_left):
            consumer.take(link)

    def _on_over(self, name: str, known: _ClientSet) -> None:
        if self._sets.get(name) is known:
            del self._sets[name]
        if known.control is not None:
            known.control.close(_OVER)

    # Control links
    def attach_control(self, link: IncomingLink) -> None:
        """Attach a control link: it changes the set of the receiver of the same name, which has the same address.

        Raises AmqpError if there is no such receiver.
        """
        wanted = link.remote_target
        known = self._sets.get(link.name)
        if known is None or known.address != wanted.address:
            raise AmqpError(
                "amqp:not-found",
                f"no receiver of {wanted.address!r} with a filter set has the name of this link",
            )
        requests = RequestLink(link, lambda encoded: self._change(known, encoded), CHANGE_BYTES, CREDIT, _fail)
        requests.prepare()
        link.set_target(wanted)
        link.check_fits()
        if known.control is not None:
            known.control.close(_STOLEN)
        known.control = link
        requests.open()
        link.owner = _ControlLink(link, requests, known)

    def _change(self, known: _ClientSet, encoded: bytes) -> Outcome | LaterOutcome:
        consumer = known.consumer
        change = read_change(consumer.filter_set, encoded)
        if not isinstance(change, FilterChange):
            return change
        try:
            is_told = consumer.change(change)
        except AmqpError as error:
            return rejected(error.condition, error.description)
        if not is_told and not known.waiting:
            return ACCEPTED
        # A change that only removes filters waits for those before it: the outcome says that the set is in effect.
        known.waiting += 1
        later = LaterOutcome()
        self._in_effect.wait(lambda: self._accept(known, later))
        return later

    @staticmethod
    def _accept(known: _ClientSet, later: LaterOutcome) -> None:
        known.waiting -= 1
        later.tell(ACCEPTED)


class _ControlLink(UnstitchedOwner):
    """Owner of a control link: hands on what arrives, and forgets the link when the client leaves."""

    def __init__(self, link: IncomingLink, requests: RequestLink, known: _ClientSet) -> None:
        self._link = link
        self._requests = requests
        self._known = known

    def on_delivery(self, link: Link, delivery: Pointer) -> None:
        self._requests.on_delivery()

    def on_left(self, closed: bool, error: AmqpError | None) -> None:
        if self._known.control is self._link:
            self._known.control = None
        self._link.close() if closed else self._link.detach()


def _fail(link: IncomingLink, error: AmqpError) -> None:
    link.close(error)
