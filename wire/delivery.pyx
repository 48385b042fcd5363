"""Deliveries by the pointers of the engine, ints to Python: functions on a pointer, no object per delivery.

Spec: AMQP 1.0 [3.4] delivery states; [2.6.12] transferring a message.
Proton pools deliveries: a pointer kept after ``settle``, or after its link went, points to another, live delivery.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize

from wire.frame_size cimport fit_annotations, fit_condition, fit_data
from wire.proton cimport (
    ACCEPTED_STATE,
    RECEIVED_STATE,
    REJECTED_STATE,
    RELEASED_STATE,
    pn,
    pn_bytes_t,
    pn_condition_t,
    pn_disposition_t,
)

from wire import condition, data
from wire.engine import lib, pointer_to
from wire.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, OutcomeCode, Outcome, rejected  # no-cython-lint: others import them from here


cdef size_t pending_now(pn_delivery_t *delivery) noexcept:
    return 0 if pn.delivery_aborted(delivery) else pn.delivery_pending(delivery)


def pending(size_t delivery):
    """Return the bytes that can be read now; 0 for an aborted delivery, whose bytes the engine still counts."""
    return pending_now(<pn_delivery_t *>delivery)


def is_partial(size_t delivery):
    return bool(pn.delivery_partial(<pn_delivery_t *>delivery))


def is_aborted(size_t delivery):
    return bool(pn.delivery_aborted(<pn_delivery_t *>delivery))


def is_settled(size_t delivery):
    """Say whether the peer settled the delivery."""
    return bool(pn.delivery_settled(<pn_delivery_t *>delivery))


def is_buffered(size_t delivery):
    """Say whether part of an outgoing delivery is not written yet."""
    return bool(pn.delivery_buffered(<pn_delivery_t *>delivery))


def remote_state(size_t delivery):
    return pn.delivery_remote_state(<pn_delivery_t *>delivery)


def settle(size_t delivery):
    """Settle, but an incoming delivery only when complete or aborted: its later frames would shrink the window."""
    pn.delivery_settle(<pn_delivery_t *>delivery)


def tag(size_t delivery):
    cdef pn_bytes_t value = pn.delivery_tag(<pn_delivery_t *>delivery)
    return PyBytes_FromStringAndSize(value.start, value.size)


def has_outcome(size_t delivery):
    """Say whether the peer gave a terminal state; a settlement without a state is no outcome."""
    return is_terminal(pn.delivery_remote_state(<pn_delivery_t *>delivery))


def remote_outcome(size_t delivery):
    """Return the peer's terminal state; None while there is none, or for a state that is not an outcome."""
    cdef size_t state = pn.delivery_remote_state(<pn_delivery_t *>delivery)
    if state == ACCEPTED_STATE:
        return ACCEPTED
    if state == RELEASED_STATE:
        return RELEASED
    if not is_terminal(state):
        return None
    disposition = lib.pn_delivery_remote(pointer_to("pn_delivery_t", delivery))
    if state == REJECTED_STATE:
        return Outcome(OutcomeCode.REJECTED, condition.read(lib.pn_disposition_condition(disposition)))
    return Outcome(
        OutcomeCode.MODIFIED,
        delivery_failed=bool(lib.pn_disposition_is_failed(disposition)),
        undeliverable_here=bool(lib.pn_disposition_is_undeliverable(disposition)),
        annotations=data.read_map(lib.pn_disposition_annotations(disposition)) or None,
    )


def set_outcome(size_t delivery, outcome):
    """Tell the peer as much as fits a frame. A later ``settle`` tells the peer that we forgot the delivery."""
    cdef size_t state = outcome.kind
    cdef pn_disposition_t *local = pn.delivery_local(<pn_delivery_t *>delivery)
    if state == REJECTED_STATE or state == MODIFIED_STATE:
        disposition = lib.pn_delivery_local(pointer_to("pn_delivery_t", delivery))
        if state == REJECTED_STATE:
            condition.write(lib.pn_disposition_condition(disposition), outcome.error)
            fit_condition(pn.disposition_condition(local), <pn_delivery_t *>delivery)
        else:
            lib.pn_disposition_set_failed(disposition, outcome.delivery_failed)
            lib.pn_disposition_set_undeliverable(disposition, outcome.undeliverable_here)
            data.write_map(lib.pn_disposition_annotations(disposition), outcome.annotations)
            fit_annotations(local, <pn_delivery_t *>delivery)
    pn.delivery_update(<pn_delivery_t *>delivery, state)


cdef int set_failed(pn_delivery_t *delivery) noexcept:
    """Set MODIFIED with delivery-failed: the delivery was written, and is in doubt."""
    cdef pn_disposition_t *local = pn.delivery_local(delivery)
    pn.disposition_set_failed(local, True)
    pn.disposition_set_undeliverable(local, False)
    pn.delivery_update(delivery, MODIFIED_STATE)
    return 0


cdef int _copy_condition(pn_condition_t *origin, pn_condition_t *goal) noexcept:
    """Copy a condition and its info, which `pn_condition_copy` leaves behind unless the info was read before."""
    pn.condition_set_name(goal, pn.condition_get_name(origin))
    pn.condition_set_description(goal, pn.condition_get_description(origin))
    return pn.data_copy(pn.condition_info(goal), pn.condition_info(origin))


cdef bint copy_state(pn_delivery_t *origin, pn_delivery_t *goal) except -1:
    """Give ``goal`` locally the remote state of ``origin``, of whatever kind; return False when there is no state.

    The copy has as much of an error, annotations or data as fits a frame of the peer of ``goal``.
    """
    cdef size_t state = pn.delivery_remote_state(origin)
    cdef pn_disposition_t *remote
    cdef pn_disposition_t *local
    if not state:
        return False
    if state != ACCEPTED_STATE and state != RELEASED_STATE:
        remote, local = pn.delivery_remote(origin), pn.delivery_local(goal)
        if state == REJECTED_STATE:
            _copy_condition(pn.disposition_condition(remote), pn.disposition_condition(local))
            fit_condition(pn.disposition_condition(local), goal)
        elif state == MODIFIED_STATE:
            pn.disposition_set_failed(local, pn.disposition_is_failed(remote))
            pn.disposition_set_undeliverable(local, pn.disposition_is_undeliverable(remote))
            pn.data_copy(pn.disposition_annotations(local), pn.disposition_annotations(remote))
            fit_annotations(local, goal)
        elif state == RECEIVED_STATE:
            pn.disposition_set_section_number(local, pn.disposition_get_section_number(remote))
            pn.disposition_set_section_offset(local, pn.disposition_get_section_offset(remote))
        else:
            pn.data_copy(pn.disposition_data(local), pn.disposition_data(remote))
            fit_data(local, goal)
    pn.delivery_update(goal, state)
    return True
