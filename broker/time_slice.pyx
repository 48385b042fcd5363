"""Sets the time slice that the scheduler gives to a thread.

A thread that asks for a shorter slice gets a core sooner: from 6.12 on Linux serves a thread with a short slice first.
Older kernels accept the setting without effect. The system call is `sched_setattr(2)`, for which neither Python nor the
C library has a function.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

cdef extern from "<sys/syscall.h>" nogil:
    long SYS_sched_getattr
    long SYS_sched_setattr

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...)

cdef struct Attributes:  # struct sched_attr, as of its first version
    uint32_t size
    uint32_t policy
    uint64_t flags
    int32_t nice
    uint32_t priority
    uint64_t runtime_ns
    uint64_t deadline_ns
    uint64_t period_ns


def ask_for_slice(slice_us: int) -> bool:
    """Set the time slice of the calling thread to ``slice_us`` microseconds; scheduling policy and niceness stay.

    Return True, or False without a change if the kernel or a sandbox refuses.
    """
    cdef Attributes asked
    memset(&asked, 0, sizeof(asked))
    if syscall(SYS_sched_getattr, <long>0, &asked, <long>sizeof(asked), <long>0) != 0:
        return False
    asked.size = sizeof(asked)
    asked.runtime_ns = <uint64_t>slice_us * 1000
    return syscall(SYS_sched_setattr, <long>0, &asked, <long>0) == 0


def slice_us() -> int:
    """Return the time slice of the calling thread, in microseconds; 0 if the kernel chooses it, or does not say."""
    cdef Attributes has
    memset(&has, 0, sizeof(has))
    if syscall(SYS_sched_getattr, <long>0, &has, <long>sizeof(has), <long>0) != 0:
        return 0
    return has.runtime_ns // 1000
