"""All queues and subscriptions of a broker, found by address, filter or subscription key."""

from broker.queueing.commit cimport Commits
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.published cimport PublishedTopics
from broker.queueing.queue cimport Queue
from broker.queueing.used_queues cimport UsedQueues
from recording.records cimport Recorder

from dataclasses import replace

from addressing.address import Address
from addressing.queue_policy import NO_POLICY
from broker.store.batch import QueueKind, QueueRow
from broker.queueing.subscribers import SubscriptionKey
from broker.queueing.topic import SubscriptionTrees


def _no_policy(address):
    return NO_POLICY


cdef class BrokerQueues:
    """Finds, makes and forgets the queues and subscriptions of a broker; `MessageStore` adds the messages.

    An address or filter is an `Address`, so equal names of two spaces are two queues; rows of the store, and queues
    themselves, have the text of the address. ``policy_of`` gives the QueuePolicy of a queue's address or a
    subscription's filter; by default there is no policy.
    """

    def __init__(self, Commits commits not None, Recorder recorder not None, policy_of=None):
        self.commits, self.recorder = commits, recorder
        self.policy_of = policy_of or _no_policy
        self.queues, self.subscribers, self.every, self.passing = {}, {}, {}, {}
        self.subscriptions = SubscriptionTrees()
        self.published = PublishedTopics()
        self.used = UsedQueues()
        self.next_queue_id = 1

    def watch(self, watcher):
        """Have ``watcher.on_made`` and ``on_gone`` called with durable queues made or deleted, not subscriptions."""
        self.watcher = watcher

    def queue(self, address, owner=None):
        """Return the durable queue at this address, made if there is none: ``owner`` is then the user who owns it."""
        held = self.queues.get(address)
        if held is None:
            row = QueueRow(self._new_queue_id(), QueueKind.QUEUE, address.text, owner=owner)
            self.commits.write.queues.append(row)
            held = self.add_from(row)
            if self.watcher is not None:
                self.watcher.on_made(held)
        return held

    def temporary_queue(self, address, *, is_probe=False):
        """Return the queue in memory at this address, made if there is none, and deleted once unused and empty."""
        held = self.queues.get(address)
        if held is None:
            held = self.queues[address] = self._add(self._held(address, self._passing_queue(), is_probe=is_probe))
        return held

    def existing_queue(self, address):
        return self.queues.get(address)

    def subscribe(self, filter_, key=None, owner=None, filter_set=None):
        """Make a non-durable subscription, which ends with its link or, given a key, with the last link of the key.

        With a ``filter_set`` it gets only messages that a filter of the set matches, too.
        """
        held = self._held(
            filter_, self._passing_queue(), key=key, is_subscription=True, owner=owner, filter_set=filter_set
        )
        self._add(held)
        self.passing[held] = None
        if key is not None:
            self.subscribers[key] = held
        self.subscriptions.add(filter_, held, filter_set)
        self.published.forget_all()
        return held

    def change_filters(self, HeldQueue held not None, change):
        """Make ``change`` (a `FilterChange`) in the filter set of ``held``: it is in effect for the next message."""
        added, removed = held.filter_set.difference(change)
        if added or removed:
            address = Address.parse(held.address)
            self.subscriptions.change(address, held, held.filter_set.kind, added, removed)
            held.filter_set.filters |= added
            held.filter_set.filters -= removed
            self.published.forget_all()
        held.filter_set.serial = change.serial

    def subscribe_durably(self, filter_, key, owner=None):
        """Return the durable subscription of this key with this filter, made if there is none.

        A subscription of the same key with another filter is deleted, with its messages.
        """
        held = self.subscribers.get(key)
        if held is not None and held.address == filter_.text:
            return held
        if held is not None:
            self.delete(held)
        row = QueueRow(self._new_queue_id(), QueueKind.SUBSCRIPTION, filter_.text, *key, owner)
        self.commits.write.queues.append(row)
        return self.add_from(row)

    def give_to(self, HeldQueue held not None, owner):
        """Make ``owner``, a user, the owner of the subscription, in memory and, with the open batch, in the store."""
        held.owner = owner
        self._rewrite(held, owner=owner)

    def note_use(self, HeldQueue held not None, used_at_s):
        """Write ``used_at_s``, the Unix time at which a link last attached to a queue or detached, to its row."""
        self._rewrite(held, used_at_s=used_at_s)

    def _rewrite(self, HeldQueue held, **changes):
        """Change fields of a queue's row in the store; do nothing for a queue in memory or a deleted queue."""
        if held.row is not None and not held.is_deleted:
            held.row = replace(held.row, **changes)
            self.commits.write.queues.append(held.row)

    def subscription(self, key):
        return self.subscribers.get(key)

    def durable_subscriptions(self):
        return [held for held in self.subscribers.values() if held.is_durable]

    def every_queue(self):
        """Return all queues and subscriptions of the broker, in the order in which they were added."""
        return list(self.every)

    def matching(self, address):
        return self.subscriptions.matching(address)

    def add_from(self, row):
        """Add the durable queue or subscription of a row, which is in the store or in the open batch, and return it."""
        address = Address.parse(row.address)
        policy = self.policy_of(address)
        queue = Queue(
            max_delivery_attempts=policy.max_delivery_attempts, first_position=self.first_position()
        )
        if row.kind is QueueKind.QUEUE:
            held = self.queues[address] = self._held(address, queue, row=row, policy=policy)
            return self._add(held)
        key = SubscriptionKey(row.container_id, row.link_name)
        held = self._held(address, queue, row=row, key=key, is_subscription=True, policy=policy)
        self.subscribers[key] = held
        self.subscriptions.add(address, held)
        self.published.forget_all()
        return self._add(held)

    def delete(self, HeldQueue held not None):
        """Delete a queue or subscription with all messages; `MessageStore` implements this method."""
        raise NotImplementedError

    def first_position(self):
        """Return the position of the first message of a queue that is made now; `MessageStore` implements this."""
        raise NotImplementedError

    cdef int forget(self, HeldQueue held) except -1:
        """Remove a deleted queue or subscription from all look-ups: a new one may have its name from now on."""
        del self.every[held]
        self.wildcard_count -= held.has_wildcards
        self.recorder.note(held, False, None)
        if self.watcher is not None and held.row is not None and not held.is_subscription:
            self.watcher.on_gone(held)
        self.passing.pop(held, None)
        if held.is_subscription:
            self.subscriptions.remove(Address.parse(held.address), held, held.filter_set)
            self.published.forget_all()
        else:
            del self.queues[Address.parse(held.address)]
        if held.key is not None:
            del self.subscribers[held.key]
        return 0

    def _passing_queue(self):
        return Queue(is_durable=False, first_position=self.first_position())

    def _held(self, address, queue, **options):
        return HeldQueue(address.text, queue, self.recorder, **options)

    def _add(self, HeldQueue held):
        self.every[held] = None
        self.wildcard_count += held.has_wildcards
        return held

    def _new_queue_id(self):
        self.next_queue_id += 1
        return self.next_queue_id - 1
