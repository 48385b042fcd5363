"""Groups rows with equal keys and sums their values by sorting whole-number keys, the fastest way in numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
import pyarrow

from linklogs.replay.codes import Numbers


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows grouped by key.

    ``order`` puts rows with the same key side by side; each group begins at one of ``begins`` in this order; ``keys``
    has the key of each group.
    """

    order: Numbers
    begins: Numbers
    keys: Numbers

    @classmethod
    def by(cls, keys: Numbers) -> Groups:
        order = numpy.argsort(keys)
        in_order = keys[order]
        begins = changes(in_order)
        return cls(order, begins, in_order[begins])

    def __len__(self) -> int:
        return len(self.begins)

    def added(self, values: Numbers) -> Numbers:
        return _reduced(numpy.add, values[self.order], self.begins)

    def largest(self, values: Numbers) -> Numbers:
        return _reduced(numpy.maximum, values[self.order], self.begins)

    def places(self) -> Numbers:
        """Return, for each row, the number of the group to which the row belongs, counted from 0 in order of keys."""
        places = numpy.empty(len(self.order), numpy.int64)
        places[self.order] = numpy.repeat(numpy.arange(len(self)), self.lengths())
        return places

    def lengths(self) -> Numbers:
        return numpy.diff(self.begins, append=len(self.order))


def changes(in_order: Numbers) -> Numbers:
    """Return the indices at which the sorted column ``in_order`` has another value than before, and the first index."""
    is_new = numpy.empty(len(in_order), bool)
    is_new[:1] = True
    numpy.not_equal(in_order[1:], in_order[:-1], out=is_new[1:])
    return numpy.flatnonzero(is_new)


def numbered(values: Numbers) -> tuple[Numbers, Numbers]:
    """Give a number from 0 to each distinct value; return the number of each of ``values``, and the value by number."""
    encoded = pyarrow.array(values).dictionary_encode()
    return encoded.indices.to_numpy().astype(numpy.int64), encoded.dictionary.to_numpy()


def _reduced(ufunc: numpy.ufunc, values: Numbers, begins: Numbers) -> Numbers:
    reduced: Numbers = ufunc.reduceat(values, begins) if len(begins) else values[:0]
    return reduced
