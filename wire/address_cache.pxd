cdef class AddressCache:
    cdef object on_filled
    cdef Py_ssize_t most
    cdef dict young
    cdef dict old

    cdef object get_now(self, bytes to)
    cdef int put_now(self, bytes to, value) except -1
    cdef int _keep(self, bytes to, value) except -1
