"""The subscriptions that get a message published to an address.

A subscription without a filter set has one filter, the address of its source, which may be a pattern.

A subscription with a filter set gets a message if the address of its source and any filter of the set match. All
filters of all sets are in one tree for each kind of filter, so a look-up costs the length of the address and the number
of matches, and a change costs the length of the filters that come and go.

Each space has trees of its own, so a filter matches addresses of its space only.
"""

from addressing.filter_tree cimport AmqpTree, FilterTree

from collections import deque

from addressing.filter_kinds import FilterKind
from addressing.filter_tree import MqttTree

cdef enum:
    # So many filters are removed at a time, which takes about a millisecond.
    _AT_ONCE = 1000


cdef class _SpaceTrees:
    """The trees of one space.

    Always: ``source_of`` has the key of each subscription with a filter set, and the name of its source's address
    Always: ``sources`` has these names, each with itself as its key, and ``source_counts`` how often each is there
    """

    cdef AmqpTree plain
    cdef dict sets
    cdef AmqpTree sources
    cdef dict source_counts
    cdef dict source_of

    def __cinit__(self):
        self.plain, self.sources = AmqpTree(), AmqpTree()
        self.sets = {FilterKind.AMQP: AmqpTree(), FilterKind.MQTT: MqttTree()}
        self.source_counts, self.source_of = {}, {}

    cdef bint is_empty(self) except -1:
        return not self.plain and not self.source_of

    cdef int begin_set(self, str source, key) except -1:
        count = self.source_counts.get(source, 0)
        if not count:
            self.sources.add(source, source)
        self.source_counts[source] = count + 1
        self.source_of[key] = source
        return 0

    cdef int end_set(self, key) except -1:
        cdef str source = self.source_of.pop(key)
        self.source_counts[source] -= 1
        if not self.source_counts[source]:
            del self.source_counts[source]
            self.sources.remove(source, source)
        return 0

    cdef list matching(self, str address):
        cdef dict found = {}, narrowed = {}, sources = {}
        cdef FilterTree tree
        self.plain.collect(address, found)
        if self.source_of:
            for tree in self.sets.values():
                tree.collect(address, narrowed)
        if narrowed:
            self.sources.collect(address, sources)
            for key in narrowed:
                if self.source_of.get(key) in sources:
                    found[key] = None
        return list(found)


cdef class SubscriptionTrees:
    """The trees of all spaces that have subscriptions. A key stands for a subscription, of one space.

    The filters of a set that ended are removed from the tree some at a time, and are ignored from the end on. So the key
    of a subscription with a set must not be used again.

    Always: the trees of no space are without subscriptions
    Always: ``ended`` has (tree, key, filters) of each set that ended and has filters in its tree
    """

    cdef dict trees
    cdef object ended

    def __init__(self):
        self.trees = {}
        self.ended = deque()

    def add(self, address, key, filter_set=None):
        """Add the subscription ``key`` to ``address``, an `Address`, narrowed by a filter set if there is one."""
        cdef _SpaceTrees trees = self.trees.get(address.space)
        if trees is None:
            trees = self.trees[address.space] = _SpaceTrees.__new__(_SpaceTrees)
        if filter_set is None:
            trees.plain.add(address.name, key)
            return
        trees.begin_set(address.name, key)
        self.change(address, key, filter_set.kind, filter_set.filters, ())

    def remove(self, address, key, filter_set=None):
        """Remove the subscription that was added with this key; raise KeyError if there is none.

        Its filter set is used up.
        """
        cdef _SpaceTrees trees = self.trees[address.space]
        if filter_set is None:
            trees.plain.remove(address.name, key)
        else:
            trees.end_set(key)
            self.ended.append((trees.sets[filter_set.kind], key, filter_set.filters))
            self.drop_some()
        if trees.is_empty():
            del self.trees[address.space]

    @property
    def has_ended(self):
        """Whether filters of sets that ended are still to be removed by `drop_some`."""
        return bool(self.ended)

    def drop_some(self):
        """Remove up to _AT_ONCE filters of sets that ended from their trees."""
        cdef FilterTree tree
        cdef int count = 0
        while self.ended and count < _AT_ONCE:
            tree, key, filters = self.ended[0]
            while filters and count < _AT_ONCE:
                tree.remove(filters.pop(), key)
                count += 1
            if not filters:
                self.ended.popleft()

    def change(self, address, key, kind, added, removed):
        """Add filters of the set of subscription ``key`` that are not there yet, and remove filters that are there."""
        cdef FilterTree tree = (<_SpaceTrees>self.trees[address.space]).sets[kind]
        for filter_ in removed:
            tree.remove(filter_, key)
        for filter_ in added:
            tree.add(filter_, key)

    def matching(self, address):
        """Return the keys of all subscriptions that get a message published to ``address``, each key once."""
        cdef _SpaceTrees trees = self.trees.get(address.space)
        return [] if trees is None else trees.matching(address.name)
