"""Trees of filters: which filters match an address?

A filter is one address, or a pattern of a kind of `addressing.filter_kinds`; here all matching filters count, not only
the best match. Of the kind ``amqp``, as `addressing.pattern` defines it, delimiters included:

        news.#  ->  news,  news.sport,  news.sport/football
        news.*  ->  news.sport
"""

from cpython.list cimport PyList_GET_SIZE
from cpython.unicode cimport PyUnicode_READ_CHAR

cdef tuple _STARS = ("*", ".*", "/*")
cdef tuple _HASHES = ("#", ".#", "/#")


cdef class FilterBranch:
    """A node of a tree: the keys of the filters that end here, and the branches of the labels that may follow."""

    def __cinit__(self):
        self.keys, self.below = {}, {}


cdef class FilterTree:
    """Filters in a tree, one label for each level: a look-up costs the length of an address, not the number of filters.

    Always: no branch is empty but the root
    """

    def __init__(self):
        self.root = FilterBranch.__new__(FilterBranch)

    def __bool__(self):
        return bool(self.root.keys or self.root.below)

    def add(self, str filter_ not None, key):
        cdef FilterBranch branch = self.root, below
        cdef str label
        for label in self.split(filter_):
            below = branch.below.get(label)
            if below is None:
                below = branch.below[label] = FilterBranch.__new__(FilterBranch)
                branch.wildcard_count += self.is_wildcard(label)
            branch = below
        branch.keys[key] = None

    def remove(self, str filter_ not None, key):
        """Remove the filter that was added with this key; raise KeyError if there is none."""
        cdef list labels = self.split(filter_), path = [self.root]
        cdef FilterBranch branch = self.root, parent
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


cdef class AmqpTree(FilterTree):
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

    cdef int _match(self, FilterBranch branch, list tokens, Py_ssize_t start, dict found) except -1:
        """Collect the keys at and below ``branch`` whose filters match the tokens from ``start`` on.

        No wildcard on the way to the branch leaves a choice, so there is one position; see `_match_any` for more.
        """
        cdef Py_ssize_t count = PyList_GET_SIZE(tokens)
        cdef FilterBranch below
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

    cdef int _match_wildcards(self, FilterBranch branch, list tokens, Py_ssize_t start, dict found) except -1:
        cdef Py_ssize_t count = PyList_GET_SIZE(tokens)
        cdef FilterBranch below
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

    cdef int _match_any(self, FilterBranch branch, list tokens, list starts, dict found) except -1:
        """Collect the keys at and below ``branch`` whose filters match the tokens from any of ``starts`` on.

        ``starts``, at least one and in order, are the positions up to which the filter has matched so far. All go on at
        once: tried one by one, `#.#.#` in a filter would cost all ways to share the tokens out.
        """
        cdef Py_ssize_t count = PyList_GET_SIZE(tokens), start
        cdef FilterBranch below
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

    cdef int _match(self, FilterBranch branch, list levels, Py_ssize_t at, bint is_reserved, dict found) except -1:
        """Collect the keys at and below ``branch`` whose filters match the levels from ``at`` on.

        ``is_reserved``: no wildcard matches the level at ``at``, a first level that begins with `$`.
        """
        cdef FilterBranch below
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


class FilterTrees:
    """The trees of the filters of all spaces that have filters: a filter matches addresses of its space only.

    Always: no tree is empty
    """

    def __init__(self):
        self._trees = {}

    def add(self, filter_, key):
        self._trees.setdefault(filter_.space, AmqpTree()).add(filter_.name, key)

    def remove(self, filter_, key):
        """Remove the filter that was added with this key; raise KeyError if there is none."""
        tree = self._trees[filter_.space]
        tree.remove(filter_.name, key)
        if not tree:
            del self._trees[filter_.space]

    def matching(self, address):
        """Return the keys of all filters that match ``address``, an `Address`, each key once."""
        tree = self._trees.get(address.space)
        return [] if tree is None else tree.matching(address.name)
