"""Functions on deliveries, given by their pointers in the engine, which are ints to Python: no object per delivery.

Spec: AMQP 1.0 [3.4] delivery states; [2.6.12] transferring a message.
Proton reuses deliveries: drop a pointer at ``settle``, or when its link is freed, as it may then be another delivery's.
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
    """Return how many bytes of an incoming delivery have arrived and are not read yet; 0 for an aborted delivery."""
    return pending_now(<pn_delivery_t *>delivery)


def is_partial(size_t delivery):
    return bool(pn.delivery_partial(<pn_delivery_t *>delivery))


def is_aborted(size_t delivery):
    return bool(pn.delivery_aborted(<pn_delivery_t *>delivery))


def is_settled(size_t delivery):
    """Say whether the peer has settled the delivery, with or without a state."""
    return bool(pn.delivery_settled(<pn_delivery_t *>delivery))


def is_buffered(size_t delivery):
    """Say whether the engine still has bytes of an outgoing delivery that are not in its output yet."""
    return bool(pn.delivery_buffered(<pn_delivery_t *>delivery))


def remote_state(size_t delivery):
    return pn.delivery_remote_state(<pn_delivery_t *>delivery)


def settle(size_t delivery):
    """Settle a delivery on our side. Callers settle an incoming delivery only once it is complete or aborted.

    Frames that arrive for a settled delivery would take room of the session's window for good.
    """
    pn.delivery_settle(<pn_delivery_t *>delivery)


def tag(size_t delivery):
    cdef pn_bytes_t value = pn.delivery_tag(<pn_delivery_t *>delivery)
    return PyBytes_FromStringAndSize(value.start, value.size)


def has_outcome(size_t delivery):
    """Say whether the peer gave the delivery a terminal state; a settlement without a state does not count."""
    return is_terminal(pn.delivery_remote_state(<pn_delivery_t *>delivery))


def remote_outcome(size_t delivery):
    """Return the delivery's terminal state from the peer; None without a state, or for a state that is not terminal."""
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
    """Send the peer our ``outcome`` of a delivery, without settling the delivery.

    An error or annotations too large for a frame of the peer are cut or dropped.
    """
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
    """Send the sender of a delivery in doubt the outcome MODIFIED with delivery-failed.

    In doubt is a delivery that was sent on, and whose outcome is lost.
    """
    cdef pn_disposition_t *local = pn.delivery_local(delivery)
    pn.disposition_set_failed(local, True)
    pn.disposition_set_undeliverable(local, False)
    pn.delivery_update(delivery, MODIFIED_STATE)
    return 0


cdef int _copy_condition(pn_condition_t *origin, pn_condition_t *goal) noexcept:
    """Copy the error condition ``origin``, its info included, to ``goal``.

    Proton's `pn_condition_copy` would leave out an info that was not read before.
    """
    pn.condition_set_name(goal, pn.condition_get_name(origin))
    pn.condition_set_description(goal, pn.condition_get_description(origin))
    return pn.data_copy(pn.condition_info(goal), pn.condition_info(origin))


cdef bint copy_state(pn_delivery_t *origin, pn_delivery_t *goal) except -1:
    """Send the state that the peer of ``origin`` gave that delivery as our state of the delivery ``goal``.

    Return False if there is no state. An error too large for a frame of the peer of ``goal`` is shortened, annotations
    or data too large are dropped.
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
