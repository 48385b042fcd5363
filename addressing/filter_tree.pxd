cdef class FilterBranch:
    cdef dict keys
    cdef dict below
    # Number of the labels in ``below`` that are wildcards.
    cdef int wildcard_count


cdef class FilterTree:
    cdef FilterBranch root

    cdef int collect(self, str address, dict found) except -1
    cdef list split(self, str text)
    cdef bint is_wildcard(self, str label) except -1


cdef class AmqpTree(FilterTree):
    cdef int _match(self, FilterBranch branch, list tokens, Py_ssize_t start, dict found) except -1
    cdef int _match_wildcards(self, FilterBranch branch, list tokens, Py_ssize_t start, dict found) except -1
    cdef int _match_any(self, FilterBranch branch, list tokens, list starts, dict found) except -1


cdef class MqttTree(FilterTree):
    cdef int _match(self, FilterBranch branch, list levels, Py_ssize_t at, bint is_reserved, dict found) except -1
