"""The trees of filters, which find the subscriptions that get a message published to an address.

A subscription without a filter set has one filter, the address of its source. A filter is a pattern as
`addressing.pattern` defines it, delimiters included; here all matching filters count, not only the best match.

        news.#  ->  news,  news.sport,  news.sport/football
        news.*  ->  news.sport

A subscription with a filter set gets a message if the address of its source and any filter of the set match. All
filters of all sets are in one tree for each kind of filter, so a look-up costs the length of the address and the number
of matches, and a change costs the length of the filters that come and go.

Each space has trees of its own, so a filter matches addresses of its space only.
"""

from cpython.list cimport PyList_GET_SIZE
from cpython.unicode cimport PyUnicode_READ_CHAR

from collections import deque

from addressing.filter_kinds import FilterKind

cdef enum:
    # So many filters are removed at a time, which takes about a millisecond.
    _AT_ONCE = 1000

cdef tuple _STARS = ("*", ".*", "/*")
cdef tuple _HASHES = ("#", ".#", "/#")


cdef class _Branch:
    """A node of a tree: the keys of the filters that end here, and the branches of the labels that may follow."""

    cdef dict keys
    cdef dict below
    # Number of the labels in ``below`` that are wildcards.
    cdef int wildcard_count

    def __cinit__(self):
        self.keys, self.below = {}, {}


cdef class FilterTree:
    """Filters in a tree, one label for each level: a look-up costs the length of an address, not the number of filters.

    Always: no branch is empty but the root
    """

    cdef _Branch root

    def __init__(self):
        self.root = _Branch.__new__(_Branch)

    def __bool__(self):
        return bool(self.root.keys or self.root.below)

    def add(self, str filter_ not None, key):
        cdef _Branch branch = self.root, below
        cdef str label
        for label in self.split(filter_):
            below = branch.below.get(label)
            if below is None:
                below = branch.below[label] = _Branch.__new__(_Branch)
                branch.wildcard_count += self.is_wildcard(label)
            branch = below
        branch.keys[key] = None

    def remove(self, str filter_ not None, key):
        """Remove the filter that was added with this key; raise KeyError if there is none."""
        cdef list labels = self.split(filter_), path = [self.root]
        cdef _Branch branch = self.root, parent
        cdef str label
        for label in labels:
            branch = branch.below[label]
            path.append(branch)
        del branch.keys[key]
        while labels and not branch.keys and not branch.below:
            path.pop()
            parent, label = path[PyList_GET_SIZE(path) - 1], labels.pop()
            del parent.below[label]
            parent.wildcard_count -= self.is_wildcard(label)
            branch = parent

    def matching(self, str address not None):
        """Return the keys of all filters that match the address, each once, in however many ways its filter matches."""
        cdef dict found = {}
        self.collect(address, found)
        return list(found)

    cdef int collect(self, str address, dict found) except -1:
        """Add the keys of all filters that match the address to ``found``."""
        raise NotImplementedError

    cdef list split(self, str text):
        raise NotImplementedError

    cdef bint is_wildcard(self, str label) except -1:
        raise NotImplementedError


cdef class SubscriptionTree(FilterTree):
    """A tree of filters of the kind ``amqp``, whose labels have the delimiter before them: `a.b/c` is `a`, `.b`, `/c`.

    A wildcard fits a token with the delimiter of its label, and the first token, which has none. The first token fits a
    literal label with any delimiter, too: the label then stands behind a leading `#` that stands for nothing.
    """

    cdef list split(self, str text):
        cdef list tokens = []
        cdef Py_ssize_t start = 0, at, size = len(text)
        cdef Py_UCS4 character
        for at in range(size):
            character = PyUnicode_READ_CHAR(text, at)
            if character == u"." or character == u"/":
                tokens.append(text[start:at])
                start = at
        tokens.append(text[start:size])
        return tokens

    cdef bint is_wildcard(self, str label) except -1:
        return label in _STARS or label in _HASHES

    cdef int collect(self, str address, dict found) except -1:
        return self._match(self.root, self.split(address), 0, found)

    cdef int _match(self, _Branch branch, list tokens, Py_ssize_t start, dict found) except -1:
        """Collect the keys at and below ``branch`` whose filters match the tokens from ``start`` on.

        No wildcard on the way to the branch leaves a choice, so there is one position; see `_match_any` for more.
        """
        cdef Py_ssize_t count = PyList_GET_SIZE(tokens)
        cdef _Branch below
        cdef str label
        if start == count and branch.keys:
            found.update(branch.keys)
        if not branch.below:
            return 0
        if branch.wildcard_count:
            self._match_wildcards(branch, tokens, start, found)
        if start < count:
            for label in _literals(tokens, start):
                below = branch.below.get(label)
                if below is not None and not self.is_wildcard(label):
                    self._match(below, tokens, start + 1, found)
        return 0

    cdef int _match_wildcards(self, _Branch branch, list tokens, Py_ssize_t start, dict found) except -1:
        cdef Py_ssize_t count = PyList_GET_SIZE(tokens)
        cdef _Branch below
        cdef str label
        for label in _HASHES:
            below = branch.below.get(label)
            if below is None:
                continue
            if start < count and not _fits(tokens, start, label):
                self._match(below, tokens, start, found)
            elif below.below:
                self._match_any(below, tokens, list(range(start, count + 1)), found)
            else:
                found.update(below.keys)
        if start < count:
            for label in _STARS:
                below = branch.below.get(label)
                if below is not None and _fits(tokens, start, label):
                    self._match(below, tokens, start + 1, found)
        return 0

    cdef int _match_any(self, _Branch branch, list tokens, list starts, dict found) except -1:
        """Collect the keys at and below ``branch`` whose filters match the tokens from any of ``starts`` on.

        ``starts``, at least one and in order, are the positions up to which the filter has matched so far. All go on at
        once: tried one by one, `#.#.#` in a filter would cost all ways to share the tokens out.
        """
        cdef Py_ssize_t count = PyList_GET_SIZE(tokens), start
        cdef _Branch below
        cdef dict literals
        cdef list ends
        cdef str label
        if <Py_ssize_t>starts[PyList_GET_SIZE(starts) - 1] == count and branch.keys:
            found.update(branch.keys)
        if not branch.below:
            return 0
        if branch.wildcard_count:
            for label in _HASHES:
                below = branch.below.get(label)
                if below is not None:
                    self._match_any(below, tokens, _after_hash(tokens, starts, label), found)
            for label in _STARS:
                below = branch.below.get(label)
                if below is not None:
                    ends = [start + 1 for start in starts if start < count and _fits(tokens, start, label)]
                    if ends:
                        self._match_any(below, tokens, ends, found)
        literals = {}
        for start in starts:
            if start < count:
                for label in _literals(tokens, start):
                    if label in branch.below and not self.is_wildcard(label):
                        literals.setdefault(label, []).append(start + 1)
        for label, ends in literals.items():
            self._match_any(branch.below[label], tokens, ends, found)
        return 0


cdef class MqttTree(FilterTree):
    """A tree of filters of the kind ``mqtt``: labels have no delimiter, and a `#` is the last label. [MQTT 5.0, 4.7]"""

    cdef list split(self, str text):
        return text.split("/")

    cdef bint is_wildcard(self, str label) except -1:
        return label == "+" or label == "#"

    cdef int collect(self, str address, dict found) except -1:
        cdef list levels = self.split(address)
        return self._match(self.root, levels, 0, (<str>levels[0]).startswith("$"), found)

    cdef int _match(self, _Branch branch, list levels, Py_ssize_t at, bint is_reserved, dict found) except -1:
        """Collect the keys at and below ``branch`` whose filters match the levels from ``at`` on.

        ``is_reserved``: no wildcard matches the level at ``at``, a first level that begins with `$`.
        """
        cdef _Branch below
        cdef str level
        if at == PyList_GET_SIZE(levels):
            if branch.keys:
                found.update(branch.keys)
        elif branch.below:
            level = levels[at]
            below = branch.below.get(level)
            if below is not None and not self.is_wildcard(level):
                self._match(below, levels, at + 1, False, found)
            below = branch.below.get("+") if branch.wildcard_count and not is_reserved else None
            if below is not None:
                self._match(below, levels, at + 1, False, found)
        if branch.wildcard_count and not is_reserved:
            below = branch.below.get("#")
            if below is not None:
                found.update(below.keys)
        return 0


cdef tuple _literals(list tokens, Py_ssize_t start):
    cdef str token = tokens[start]
    return (token, "." + token, "/" + token) if start == 0 else (token,)


cdef bint _fits(list tokens, Py_ssize_t start, str wildcard) except -1:
    """Say whether the delimiter of the label ``wildcard`` is that of the token at ``start``, or the token is first."""
    return start == 0 or PyUnicode_READ_CHAR(tokens[start], 0) == PyUnicode_READ_CHAR(wildcard, 0)


cdef list _after_hash(list tokens, list starts, str label):
    """Return the positions up to which a filter has matched after the `#` with this label, in order."""
    cdef Py_ssize_t count = PyList_GET_SIZE(tokens), start
    cdef list before = []
    for start in starts:
        if start < count and _fits(tokens, start, label):
            # From here on the `#` takes any number of tokens, so every later position is one, too.
            return before + list(range(start, count + 1))
        before.append(start)
    return before


cdef class _SpaceTrees:
    """The trees of one space.

    Always: ``source_of`` has the key of each subscription with a filter set, and the name of its source's address
    Always: ``sources`` has these names, each with itself as its key, and ``source_counts`` how often each is there
    """

    cdef SubscriptionTree plain
    cdef dict sets
    cdef SubscriptionTree sources
    cdef dict source_counts
    cdef dict source_of

    def __cinit__(self):
        self.plain, self.sources = SubscriptionTree(), SubscriptionTree()
        self.sets = {FilterKind.AMQP: SubscriptionTree(), FilterKind.MQTT: MqttTree()}
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
