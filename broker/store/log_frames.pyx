"""Parses SQLite's write-ahead log, and tells whether each frame matches its checksum. See SQLite's file format, 4.

A frame's checksum continues the checksum of the frame before. Here each frame is verified from the checksum that the
frame before *says*, so that one damaged frame does not make all frames behind it look damaged.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcmp

ctypedef unsigned int u32

HEADER_BYTES = 32
FRAME_HEAD_BYTES = 24

cdef enum:
    _HEADER_BYTES = 32
    _FRAME_HEAD_BYTES = 24
    _SALTS_AT = 16
    _SUM_AT = 24
    _MAGIC = 0x377F0682


def read_header(const unsigned char[::1] log):
    """Return (salts, page size) from the header of the log ``log``; None if the header is incomplete or damaged."""
    cdef u32 one = 0, other = 0
    if log.shape[0] < _HEADER_BYTES or (_number(&log[0]) & 0xFFFFFFFE) != _MAGIC:
        return None
    _add(&log[0], _SUM_AT, log[3] & 1, &one, &other)
    if _number(&log[_SUM_AT]) != one or _number(&log[_SUM_AT + 4]) != other:
        return None
    return PyBytes_FromStringAndSize(<char *>&log[_SALTS_AT], 8), _number(&log[8])


def read_frames(const unsigned char[::1] log, bytes salts not None, int page_bytes):
    """Return (page number, page count, has these salts, matches its checksum) of each complete frame of a log.

    The page count of the database is in the last frame of a transaction; 0 in other frames. A frame without these salts
    never counts as matching its checksum. Raises ValueError if the salts are not 8 bytes.
    """
    cdef Py_ssize_t size = _FRAME_HEAD_BYTES + page_bytes
    cdef Py_ssize_t at = _HEADER_BYTES
    cdef const unsigned char *wanted = salts
    cdef bint is_big = log.shape[0] > 3 and log[3] & 1
    cdef bint is_live, is_whole
    cdef u32 one, other
    cdef list found = []
    if len(salts) != 8:
        raise ValueError(f"salts of {len(salts)} bytes: expected 8")
    if log.shape[0] < _HEADER_BYTES:
        return found
    one, other = _number(&log[_SUM_AT]), _number(&log[_SUM_AT + 4])
    while at + size <= log.shape[0]:
        is_live = memcmp(&log[at + 8], wanted, 8) == 0
        is_whole = False
        if is_live:
            _add(&log[at], 8, is_big, &one, &other)
            _add(&log[at + _FRAME_HEAD_BYTES], page_bytes, is_big, &one, &other)
            is_whole = one == _number(&log[at + 16]) and other == _number(&log[at + 20])
        found.append((_number(&log[at]), _number(&log[at + 4]), is_live, is_whole))
        one, other = _number(&log[at + 16]), _number(&log[at + 20])
        at += size
    return found


cdef u32 _number(const unsigned char *at) noexcept:
    return <u32>at[0] << 24 | <u32>at[1] << 16 | <u32>at[2] << 8 | at[3]


cdef u32 _turned(const unsigned char *at) noexcept:
    return <u32>at[3] << 24 | <u32>at[2] << 16 | <u32>at[1] << 8 | at[0]


cdef void _add(const unsigned char *at, Py_ssize_t size, bint is_big, u32 *one, u32 *other) noexcept:
    """Continue the checksum (``one``, ``other``) over ``size`` bytes, a multiple of 8, in the log's byte order."""
    cdef const unsigned char *end = at + size
    while at < end:
        one[0] += (_number(at) if is_big else _turned(at)) + other[0]
        other[0] += (_number(at + 4) if is_big else _turned(at + 4)) + one[0]
        at += 8
