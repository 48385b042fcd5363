"""Attach and detach of links at a broker: permission, link stealing, and the queues that end with a link.

Spec: AMQP 1.0 [2.6.1] naming a link and stealing it, [2.6.3] refusing, [2.6.4] detach and close, [3.5] termini.

A link is known by (container-id, link name, direction), whatever its connection: a router may return over a new
connection while the old connection still seems alive. The second attach of the same name steals the link: the broker
detaches the first link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from broker.addresses import BrokerAddress, BrokerAddresses, BrokerAddressKind
from broker.events import AttachAnswered, ConsumerTooSmall, LinkRefused, LinkStolen
from broker.links.filter_control import request_link
from broker.links.incoming import BrokerReceiver, ProducerGate
from broker.links.link_log import BrokerLinkLog
from broker.links.link_name import LinkName, container_id, link_name, name_of
from broker.links.outgoing import BrokerSender
from broker.links.second_settlement import SecondSettlements
from broker.queueing.body_cache import BodyCache
from broker.queueing.client_queues import ClientQueues
from broker.queueing.commit import Commits
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message_store import MessageStore
from broker.queueing.no_local import NoLocal, no_local_of
from broker.queueing.subscription_owners import OwnershipClaim, claim_of
from broker.queueing.subscriptions import TopicSubscriptions, timeout_s
from wire import terminus
from wire.errors import AmqpError, LinkError
from wire.filter_change import wanted_filter_set
from wire.filter_set import CONTROL, filter_set_of
from wire.link import RECEIVE_SECOND, IncomingLink, Link, OutgoingLink
from wire.log import Emit
from wire.request_link import RequestLink
from wire.terminus import DistributionMode, Durability, Expiry, Terminus, TerminusType

SELECTORS = ("apache.org:selector-filter:string", 0x0000468C00000004)
"""Descriptors of a selector, a filter that the broker refuses; its name in the filter map is the client's choice."""


@dataclass(slots=True, eq=False)
class Attachment:
    """A link that is attached at the broker, its queue or subscription, and the worker that moves its messages.

    ``worker`` is None for a link with a null source, which only looks a subscription up, usually to end it, and for a
    control link of a filter set. ``held``, the queue or subscription, is None for a control link, and for a producer
    whose link names a topic, or no address.
    """

    link: Link
    name: LinkName
    held: HeldQueue | None
    worker: BrokerReceiver | BrokerSender | None
    claim: OwnershipClaim
    owns_queue: bool = False
    timeout_s: float = inf
    """Seconds for which a durable subscription is to be kept without consumers; inf for ever."""
    is_opened: bool = False
    is_over: bool = False


class Attachments:
    """Attaches and detaches the links of a broker, except operators' links to the control address.

    Always: ``_by_name`` and ``_by_link`` have every attachment that is not over
    """

    def __init__(
        self,
        addresses: BrokerAddresses,
        made: ClientQueues,
        subscriptions: TopicSubscriptions,
        message_store: MessageStore,
        body_cache: BodyCache,
        commits: Commits,
        gate: ProducerGate,
        last_words: SecondSettlements,
        make_token: Callable[[], str],
        log: Emit,
        link_log: BrokerLinkLog,
    ) -> None:
        self._addresses = addresses
        self._made = made
        self._subscriptions = subscriptions
        self._message_store = message_store
        self._body_cache = body_cache
        self._commits = commits
        self._gate = gate
        self._last_words = last_words
        self._no_local = NoLocal()
        self._make_token = make_token
        self._log = log
        self._link_log = link_log
        self._by_name: dict[LinkName, Attachment] = {}
        self._by_link: dict[Link, Attachment] = {}

    @property
    def count(self) -> int:
        return len(self._by_name)

    def attach(self, link: Link, now: float) -> None:
        """Answer the attach of a peer: open the link, or refuse the link with the reason, which is logged.

        A link to a durable subscription is opened once the subscription is on disk.
        """
        claim = claim_of(link)
        try:
            self._admit(link, claim)
            if isinstance(link, IncomingLink):
                self._attach_producer(link, claim, now)
            elif isinstance(link, OutgoingLink):
                self._attach_consumer(link, claim, now)
        except AmqpError as error:
            self._log(
                LinkRefused(
                    claim.peer,
                    claim.user,
                    container_id(link),
                    name_of(link),
                    error.condition,
                    error.description,
                )
            )
            link.refuse(error)

    def detach(self, link: Link, now: float, *, closed: bool, error: AmqpError | None = None) -> None:
        """End a link that the peer detached, perhaps with an ``error``, and answer the detach.

        A detach that ends a durable subscription is answered once the deletion is on disk.
        """
        attachment = self._by_link.get(link)
        if attachment is None:
            link.close()
            return
        is_orderly = link.has_peer_left_in_order(error)
        is_unsubscribed = self._end(attachment, now, closed=closed, is_orderly=is_orderly)
        answer = partial(self._answer_detach, attachment, closed)
        if is_unsubscribed:
            self._commits.promise(answer)
        else:
            answer(now)

    def fail(self, link: Link, error: AmqpError, now: float) -> None:
        """End a link and close it with ``error``, since the peer broke a rule of the protocol."""
        self._end_link(link, now, error)
        link.close(error)

    def _fail_now(self, link: Link, error: AmqpError) -> None:
        self.fail(link, error, self._message_store.now)

    def _on_too_large(self, link: OutgoingLink, size: int, now: float) -> None:
        """End a consumer's link with an error, since all waiting messages exceed its max-message-size. [2.7.3]

        The link is closed; or only detached from a durable subscription, which stays.
        """
        attachment = self._by_link[link]
        held, most, claim = attachment.held, link.remote_max_message_bytes, attachment.claim
        assert held is not None
        error = LinkError(
            "amqp:link:message-size-exceeded",
            f"all waiting messages of {held.address!r} are too large for this link: the first message "
            f"has {size:,} bytes, and max-message-size is {most:,}",
        )
        self._log(ConsumerTooSmall(held.address, claim.peer, claim.user, *self._by_link[link].name[:2], size, most))
        self.force_end(link, error, now)

    def evict(self, held: HeldQueue, now: float) -> None:
        """End all links to a queue or subscription that an operator deleted.

        Each link is closed with an error once the deletion is on disk.
        """
        error = LinkError("amqp:resource-deleted", f"{held.address!r} was deleted by an operator")
        for attachment in [each for each in self._by_link.values() if each.held is held]:
            self._end(attachment, now, closed=False, error=error)
            self._commits.promise(partial(_close, attachment, error))

    def force_end(self, link: Link, error: LinkError, now: float) -> None:
        """End an attached link with ``error`` by an operator's request, as if the peer had been lost.

        The link is closed; or only detached from a durable subscription, which stays.
        """
        held = self._by_link[link].held
        self._end_link(link, now, error)
        if held is not None and held.is_subscription and held.is_durable:
            link.detach(error)
        else:
            link.close(error)

    def end(self, link: Link, now: float) -> None:
        """End a link whose connection is gone, without an answer to the peer; its durable subscription stays."""
        self._end_link(link, now, None, is_orderly=link.has_peer_left_in_order(None))

    def _end_link(self, link: Link, now: float, error: AmqpError | None, *, is_orderly: bool = False) -> None:
        attachment = self._by_link.get(link)
        if attachment is not None:
            self._end(attachment, now, closed=False, error=error, is_orderly=is_orderly)

    # Attaching

    def _admit(self, link: Link, claim: OwnershipClaim) -> None:
        if not link.endpoint.peer.is_mesh:
            raise LinkError(
                "amqp:unauthorized-access", "only nodes and operators of the mesh may attach links at its brokers"
            )
        old = self._by_name.get(link_name(link))
        if old is not None and claim.user is not None and old.claim.user != claim.user:
            raise LinkError(
                "amqp:unauthorized-access",
                f"link {old.name[1]!r} is in use by another user: user {claim.user!r} cannot take the link over",
            )

    def _steal(self, link: Link, now: float) -> None:
        """Detach the earlier link of the same name and direction, if any, with an error, in favour of ``link``."""
        old = self._by_name.get(link_name(link))
        if old is not None:
            container, name, _ = old.name
            self._log(LinkStolen(container, name, old.link.endpoint.peer.remote_address))
            error = LinkError("amqp:link:stolen", f"link {name!r} was attached again, over another session")
            self._end(old, now, closed=False, error=error)
            if old.is_opened:
                old.link.detach(error)
            else:
                old.link.refuse(error)

    def _attach_producer(self, link: IncomingLink, claim: OwnershipClaim, now: float) -> None:
        wanted = link.remote_target
        if wanted.type is TerminusType.COORDINATOR:
            raise LinkError(
                "amqp:not-implemented", "no link to a coordinator: this broker does not support transactions"
            )
        if CONTROL in wanted.capabilities:
            self._attach_filter_control(link, wanted, claim, now)
            return
        held: HeldQueue | None = None
        if wanted.is_dynamic:
            place = self._make_place(wanted)
            wanted = replace(wanted, type=TerminusType.TARGET, address=place.address.text)
            held = (
                self._message_store.temporary_queue(place.address)
                if place.holding is BrokerAddressKind.TEMPORARY
                else None
            )
        elif wanted.address is None:
            wanted = replace(wanted, type=TerminusType.TARGET)
        else:
            place = self._place_to_send(wanted.address)
            held = self._queue_at(place, claim)
        link.copy_source(link)
        link.set_target(wanted)
        link.settle_as_asked()
        link.check_fits()
        self._steal(link, now)
        queues = None if held is None else [held]
        targets = partial(self._targets, link, claim)
        receiving = BrokerReceiver(
            link,
            wanted.address,
            queues,
            targets,
            self.fail,
            self._message_store,
            self._commits,
            self._gate,
            self._addresses.resolve,
        )
        if held is not None:
            held.producer_count += 1
            self._made.on_used(held, now)
        if link.remote_settle_modes[1] == RECEIVE_SECOND:
            receiving.await_last_word(self._last_words)
        if held is None and terminus.WAITS_WHEN_FULL in wanted.capabilities:
            receiving.wait_when_full()
        attachment = self._record(link, held, receiving, claim)
        attachment.owns_queue = wanted.is_dynamic and held is not None
        self._open(attachment, now)

    def _attach_filter_control(self, link: IncomingLink, wanted: Terminus, claim: OwnershipClaim, now: float) -> None:
        """Attach a link over which a client changes the filter set of the subscription of the same link name."""
        subscription = self._by_name.get((*link_name(link)[:2], False))
        held = None if subscription is None else subscription.held
        place = self._place(wanted.address or "")
        if held is None or held.filter_set is None or held.address != place.address.text:
            raise LinkError(
                "amqp:not-found",
                # The name at the broker is the router's, which the client does not know.
                f"no receiver of {wanted.address!r} with a filter set has the name of this link",
            )
        requests = request_link(link, held, self._message_store, self._fail_now)
        requests.prepare()
        link.set_target(wanted)
        link.check_fits()
        self._steal(link, now)
        self._record(link, None, None, claim).is_opened = True
        requests.open()

    def _attach_consumer(self, link: OutgoingLink, claim: OwnershipClaim, now: float) -> None:
        wanted = link.remote_source
        _refuse_unsupported(wanted)
        link.copy_target(link)
        link.settle_as_asked()
        if wanted.is_dynamic:
            place = self._make_place(wanted)
        elif wanted.address is None:
            self._recall(link, claim, now)
            return
        else:
            place = self._place(wanted.address)
        address = place.address.text if wanted.is_dynamic else wanted.address
        # The source in the broker's answer to the attach names only the filters that the broker applies. [3.5.3]
        filter_ = {**no_local_of(wanted), **filter_set_of(wanted)} if place.holding is BrokerAddressKind.TOPIC else {}
        answered = replace(wanted, type=TerminusType.SOURCE, address=address, filter=filter_)
        link.set_source(answered if place.holding is BrokerAddressKind.TOPIC else _with_its_link(answered))
        link.check_fits()
        if place.holding is BrokerAddressKind.TOPIC:
            self._subscribe(link, place, wanted, claim, now)
        else:
            self._consume(link, place, wanted, claim, now)

    def _consume(
        self, link: OutgoingLink, place: BrokerAddress, wanted: Terminus, claim: OwnershipClaim, now: float
    ) -> None:
        if place.has_wildcards:
            raise LinkError(
                "amqp:not-allowed", f"cannot receive from {place.address.text!r}: expected a queue without wildcards"
            )
        held = self._message_store.temporary_queue(place.address) if wanted.is_dynamic else self._queue_at(place, claim)
        assert held is not None
        self._steal(link, now)
        is_browser = wanted.distribution_mode is DistributionMode.COPY
        attachment = self._record(link, held, self._sending(link, held, is_browser=is_browser), claim)
        attachment.owns_queue = wanted.is_dynamic
        self._made.on_used(held, now)
        self._open(attachment, now)

    def _subscribe(
        self, link: OutgoingLink, place: BrokerAddress, wanted: Terminus, claim: OwnershipClaim, now: float
    ) -> None:
        container, name, _ = link_name(link)
        filter_set = wanted_filter_set(wanted, has_wildcards=place.has_wildcards)
        self._subscriptions.judge(container, name, wanted, claim.user)
        self._steal(link, now)
        held = self._subscriptions.take(container, name, place.address, wanted, claim, filter_set)
        attachment = self._record(link, held, self._sending(link, held), claim)
        attachment.timeout_s = timeout_s(wanted)
        if no_local_of(wanted):
            self._no_local.begin(held, link)
            self._message_store.published.forget_all()
        if held.is_durable:
            # The link is opened once the subscription is on disk, since a client counts on an open subscription. The
            # subscription may have been made just now, perhaps by another link.
            self._commits.promise(partial(self._open, attachment))
        else:
            self._open(attachment, now)

    def _recall(self, link: OutgoingLink, claim: OwnershipClaim, now: float) -> None:
        """Answer an attach with a null source with the source of the durable subscription of the link's name. [2.6.3]

        JMS clients attach so, then close the link to end the subscription. Raises LinkError if there is no such
        subscription for this user, or if consumers use it.
        """
        held = self._subscriptions.recall(*link_name(link)[:2], claim.user)
        self._steal(link, now)
        self._subscriptions.unless_taken(held)
        link.set_source(
            terminus.source(
                held.address, durability=Durability.UNSETTLED_STATE, expiry=Expiry.NEVER, capabilities=("topic",)
            )
        )
        link.check_fits()
        self._commits.promise(partial(self._open, self._record(link, held, None, claim)))

    def _make_place(self, wanted: Terminus) -> BrokerAddress:
        """Return a new temporary address, of a topic or a queue not made yet, for the dynamic terminus ``wanted``.

        JMS asks for temporary queues by dynamic targets, other clients by dynamic sources.
        """
        return self._addresses.temporary(self._make_token(), is_topic="temporary-topic" in wanted.capabilities)

    def _place(self, address: str) -> BrokerAddress:
        place = self._addresses.resolve(address)
        if place is None:
            raise LinkError("amqp:not-found", f"no queue or topic {address!r} on this broker")
        return place

    def _place_to_send(self, address: str) -> BrokerAddress:
        place = self._place(address)
        if place.has_wildcards:
            raise LinkError(
                "amqp:not-allowed", f"cannot send to {place.address.text!r}: expected an address without wildcards"
            )
        return place

    def _queue_at(self, place: BrokerAddress, claim: OwnershipClaim) -> HeldQueue | None:
        """Return the queue at the address ``place``, made if there is none; None for a topic.

        Raises LinkError if there is no such temporary queue, or if a limit of clients' queues forbids a new queue.
        """
        if place.holding is BrokerAddressKind.TOPIC:
            return None
        held = self._message_store.existing_queue(place.address)
        if place.holding is BrokerAddressKind.QUEUE:
            if held is None:
                self._made.admit(place.address, claim.user)
            return held or self._message_store.queue(place.address, claim.user)
        if held is None and self._addresses.is_temporary(place.address):
            raise LinkError(
                "amqp:not-found",
                f"there is no temporary queue {place.address.text!r}: such a queue ends with the link that made it",
            )
        return held or self._message_store.temporary_queue(
            place.address, is_probe=place.holding is BrokerAddressKind.PROBE
        )

    def _targets(self, link: Link, claim: OwnershipClaim, address: bytes) -> list[HeldQueue]:
        """Return the queue or subscriptions for a message to ``address``, as it stands in the message or the target.

        A queue, and the subscriptions of a topic, are remembered, so that the next message there needs no call. No
        subscriptions are remembered while any subscription of the broker has a no-local filter. Raises LinkError if
        there is no such address, if the address has wildcards, or if a limit forbids a new queue.
        """
        place = self._place_to_send(address.decode())
        held, now = self._queue_at(place, claim), self._message_store.now
        if held is not None:
            self._made.on_used(held, now)
            if held.is_durable:
                self._message_store.used.note(address, held, now)
            return [held]
        found = self._message_store.matching(place.address)
        if self._no_local:
            return self._no_local.without_own(found, link)
        return self._message_store.published.note(address, found, place.published, now)

    def _sending(self, link: OutgoingLink, held: HeldQueue, *, is_browser: bool = False) -> BrokerSender:
        return BrokerSender(
            link, held, self._message_store, self._body_cache, self._commits, self._on_too_large, is_browser=is_browser
        )

    def _record(
        self, link: Link, held: HeldQueue | None, worker: BrokerReceiver | BrokerSender | None, claim: OwnershipClaim
    ) -> Attachment:
        attachment = Attachment(link, link_name(link), held, worker, claim)
        if isinstance(worker, BrokerSender) and held is not None:
            held.taker_count += 1
        link.owner = worker
        self._by_name[attachment.name] = attachment
        self._by_link[link] = attachment
        return attachment

    def _open(self, attachment: Attachment, now: float) -> None:
        if attachment.is_over:
            return
        attachment.is_opened = True
        attachment.link.open()
        if AttachAnswered.is_wanted:
            self._log(_answered(attachment))
        if attachment.worker is not None:
            self._link_log.on_attached(attachment.worker, _treatment_of(attachment))
            attachment.worker.on_attached(now)

    # Detaching

    def _end(
        self,
        attachment: Attachment,
        now: float,
        *,
        closed: bool,
        error: AmqpError | None = None,
        is_orderly: bool = False,
    ) -> bool:
        """Forget a link, and delete its queue or subscription if that ends with it.

        ``closed``: the peer closed the link, which ends a durable subscription once no other link takes from it.
        ``is_orderly``: deliveries without an outcome return to the queue as not tried, their delivery-counts unchanged.
        Return whether a durable subscription ended.
        """
        attachment.is_over = True
        self._link_log.on_detached(attachment.link, error)
        attachment.link.owner = None
        del self._by_name[attachment.name]
        del self._by_link[attachment.link]
        worker, held = attachment.worker, attachment.held
        if held is not None:
            self._no_local.end(held, attachment.link)
            if held.filter_set is not None:
                self._end_filter_control(attachment.name, now)
        if isinstance(worker, BrokerReceiver):
            worker.end()
        elif isinstance(worker, BrokerSender) and attachment.is_opened:
            worker.end(now, is_orderly=is_orderly)
        if held is None or held.is_deleted:
            return False
        if isinstance(worker, BrokerReceiver):
            held.producer_count -= 1
        elif isinstance(worker, BrokerSender):
            held.taker_count -= 1
        self._made.on_used(held, now)
        is_subscriber = held.is_subscription and not isinstance(worker, BrokerReceiver)
        is_unsubscribed = closed and is_subscriber and held.is_durable and not held.taker_count
        if is_unsubscribed:
            self._subscriptions.end(held, attachment.claim)
        elif attachment.owns_queue or held.is_forsaken:
            self._message_store.delete(held)
        elif is_subscriber and worker is not None:
            self._subscriptions.leave(held, attachment.timeout_s, now)
        return is_unsubscribed

    def _end_filter_control(self, name: LinkName, now: float) -> None:
        """Close the control link, if any, of the subscription with a filter set whose link had this name."""
        control = self._by_name.get((*name[:2], True))
        if control is not None and isinstance(control.link.owner, RequestLink):
            self.fail(
                control.link, LinkError("amqp:resource-deleted", "the receiver with the filter set has ended"), now
            )

    def _answer_detach(self, attachment: Attachment, closed: bool, now: float) -> None:
        if attachment.link.is_gone:
            return
        if not attachment.is_opened:
            attachment.link.open()
        if closed:
            attachment.link.close()
        else:
            attachment.link.detach()


def _answered(attachment: Attachment) -> AttachAnswered:
    held, claim = attachment.held, attachment.claim
    is_producer = isinstance(attachment.link, IncomingLink)
    address = held.address if held is not None else getattr(attachment.worker, "address", None)
    subscriber = held.subscriber if held is not None else None
    return AttachAnswered(
        claim.peer, claim.user, *attachment.name[:2], "incoming" if is_producer else "outgoing", address, subscriber
    )


def _treatment_of(attachment: Attachment) -> str | None:
    worker, held = attachment.worker, attachment.held
    if worker is None or worker.address is None:
        return None
    return "topic" if held is None or held.is_subscription else "queue"


def _close(attachment: Attachment, error: AmqpError, now: float) -> None:
    if attachment.is_opened:
        attachment.link.close(error)
    else:
        attachment.link.refuse(error)


def _refuse_unsupported(wanted: Terminus) -> None:
    for name, value in wanted.filter.items():
        if name in SELECTORS or getattr(value, "descriptor", None) in SELECTORS:
            raise LinkError("amqp:not-implemented", f"filter {name!r} is a selector: this broker supports none")


def _with_its_link(wanted: Terminus) -> Terminus:
    """Return the source to answer a queue's consumer with: never durable, as no state of such a link outlives it."""
    return replace(wanted, durability=Durability.NONE, expiry=Expiry.LINK_DETACH) if wanted.outlives_link else wanted
