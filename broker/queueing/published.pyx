"""The topics to which messages were published lately, each with the subscriptions that match the topic.

Topics are matched against all filters once for each topic, not for each message. A subscription that is made or deleted,
and a change of a filter set, changes the answers, so all are forgotten then.
"""

from libc.math cimport INFINITY

from wire.address_cache cimport AddressCache

from wire.address_cache import IDLE_S


cdef class PublishedTopics:
    """Maps the bytes of a topic, as they stand in a link's target or a message's `to`, to its subscriptions.

    A list of subscriptions is shared by all topics that have the same, so it is never changed.

    Always: a value in ``cache`` is the list, or the list and the topic's name where the bytes are another spelling
    """

    def __init__(self):
        self.cache = AddressCache(self._on_filled)
        self.lists = {}
        self.due_s = INFINITY

    cdef list subscriptions_of(self, bytes topic):
        """Return the subscriptions that match ``topic``; None if they are not known."""
        known = self.cache.get_now(topic)
        return known[0] if type(known) is tuple else known

    cdef bytes name_of(self, bytes topic):
        """Return the name of the topic, in UTF-8 and without scheme and host; None if ``topic`` is not known."""
        known = self.cache.get_now(topic)
        if known is None:
            return None
        return known[1] if type(known) is tuple else topic

    def note(self, topic, found, name, double now):
        """Remember that the subscriptions ``found`` match ``topic``, whose name is ``name``; return the list to use."""
        self.now = now
        found = self.lists.setdefault(tuple(found), found)
        self.cache.put_now(topic, found if topic == name else (found, name))
        return found

    cpdef int forget_all(self) except -1:
        """Forget the subscriptions of all topics, since those of some topics have changed."""
        self.cache.clear()
        self.lists.clear()
        return 0

    def _on_filled(self):
        self.due_s = self.now + IDLE_S

    def next_deadline(self):
        return None if self.due_s == INFINITY else self.due_s

    def on_time(self, double now):
        """Forget the topics to which nothing was published for IDLE_S seconds, or for up to twice as long."""
        if now < self.due_s:
            return
        if self.cache.age():
            self.due_s = now + IDLE_S
        else:
            self.due_s = INFINITY
            self.lists.clear()

    def __len__(self):
        return len(self.cache)
