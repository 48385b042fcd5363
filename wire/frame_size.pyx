"""Checks that a frame which the engine will write is no larger than the frames that the peer takes.

Spec: AMQP 1.0 [2.7.1] max-frame-size, [2.4.1] 512 bytes before the peer's OPEN. The engine splits transfers only, and
writes everything else in one frame, however large; a peer answers a frame that is too large with the end of the
connection. So an attach is measured before it is opened, and an error is shortened before it is written.
"""

from libc.string cimport strlen

from wire.core cimport EndpointCore, LinkCore
from wire.proton cimport (
    PN_REMOTE_ACTIVE,
    PN_REMOTE_UNINIT,
    PN_UNSPECIFIED,
    pn,
    pn_connection_t,
    pn_data_t,
    pn_link_t,
    pn_terminus_t,
    pn_transport_t,
)

cdef enum:
    # AMQP's MIN-MAX-FRAME-SIZE. [2.4.1]
    SMALLEST_FRAME_BYTES = 512
    # Most bytes of the parts of an attach, of a terminus and of a text that are not measured, such as headers and small
    # fields.
    ATTACH_BYTES = 50
    TERMINUS_BYTES = 52
    TEXT_BYTES = 5
    # Most bytes of a frame in front of its error condition: first for a close, end or detach, then for a disposition or
    # transfer (whose tag has 32 bytes at most).
    ENDING_BYTES = 32
    DELIVERY_BYTES = 128
    # Most bytes of an encoded error condition without its texts and info: descriptor, list, sizes of two texts.
    CONDITION_BYTES = 22
    # In a frame that is too large, the name of an error condition is cut to this size: no real name is this long, but
    # a name that a peer made up and that we pass on may be.
    MOST_NAME_BYTES = 255
    UNLIMITED = 0xFFFFFFFF

cdef bytes _ELLIPSIS = b"..."


cdef size_t _limit(pn_connection_t *connection, pn_transport_t *transport) noexcept:
    """Return the size of the largest frame that the peer takes: 512 bytes before the peer's OPEN."""
    cdef size_t taken
    if pn.connection_state(connection) & PN_REMOTE_UNINIT:
        return SMALLEST_FRAME_BYTES
    taken = pn.transport_get_remote_max_frame(transport)
    return taken if taken else UNLIMITED


cdef size_t _limit_of_attach(EndpointCore endpoint, pn_link_t *link) noexcept:
    """Return the size of the largest attach that we may write on ``link``: the largest frame that the peer takes.

    If our attach comes first, the frames that we take ourselves bound it, too, since the peer's answer repeats it.
    """
    cdef size_t limit = _limit(endpoint.connection, endpoint.transport)
    cdef size_t own = pn.transport_get_max_frame(endpoint.transport)
    if pn.link_state(link) & PN_REMOTE_ACTIVE or not own:
        return limit
    return min(limit, own)


cdef size_t _text(const char *text) noexcept:
    return 1 if text is NULL else TEXT_BYTES + strlen(text)


cdef ssize_t _value(pn_data_t *data) noexcept:
    """Return the encoded size of the value in ``data``: 0 without a value, below 0 if the value cannot be encoded."""
    return pn.data_encoded_size(data) if pn.data_size(data) else 0


cdef ssize_t _terminus(pn_terminus_t *terminus, bint is_source) noexcept:
    cdef ssize_t size, total
    if pn.terminus_get_type(terminus) == PN_UNSPECIFIED:
        return 1
    total = TERMINUS_BYTES + _text(pn.terminus_get_address(terminus))
    for data in range(4 if is_source else 2):
        if data == 0:
            size = _value(pn.terminus_properties(terminus))
        elif data == 1:
            size = _value(pn.terminus_capabilities(terminus))
        elif data == 2:
            size = _value(pn.terminus_outcomes(terminus))
        else:
            size = _value(pn.terminus_filter(terminus))
        if size < 0:
            return size
        total += size
    return total


cdef ssize_t _attach(pn_link_t *link) noexcept:
    cdef ssize_t source = _terminus(pn.link_source(link), True)
    cdef ssize_t target = _terminus(pn.link_target(link), False)
    cdef ssize_t properties = 0
    # An attach of ours that comes first may have properties; our answer to a peer's attach has none.
    if not pn.link_state(link) & PN_REMOTE_ACTIVE:
        properties = _value(pn.link_properties(link))
    if source < 0 or target < 0 or properties < 0:
        return -1
    return ATTACH_BYTES + _text(pn.link_name(link)) + source + target + properties


def find_excess(LinkCore link):
    """Return (size, largest size allowed) of our attach of ``link`` in bytes if the attach is too large, else None.

    (-1, 0) for an attach that cannot be encoded.
    """
    cdef ssize_t size = _attach(link.raw)
    cdef size_t limit
    if size < 0:
        return -1, 0
    limit = _limit_of_attach(link.endpoint, link.raw)
    return (size, limit) if <size_t>size > limit else None


# Conditions
cdef bytes _shortened(bytes text, ssize_t room):
    """Return ``text``; if it is longer than ``room`` bytes, cut after a whole character, with "..." behind.

    b"" if there is no room for more than "...".
    """
    cdef Py_ssize_t end = room - len(_ELLIPSIS)
    if len(text) <= room:
        return text
    if end <= 0:
        return b""
    while end > 0 and text[end] & 0xC0 == 0x80:
        end -= 1
    return text[:end] + _ELLIPSIS


cdef int _fit(pn_condition_t *condition, ssize_t room) except -1:
    """Shorten an error condition to ``room`` bytes, if longer: drop its info, then cut its name and description."""
    cdef const char *name = pn.condition_get_name(condition)
    cdef const char *description = pn.condition_get_description(condition)
    cdef pn_data_t *info
    cdef ssize_t texts, more
    cdef bytes cut
    if name is NULL:
        return 0
    info = pn.condition_info(condition)
    more = _value(info)
    texts = CONDITION_BYTES + strlen(name) + (0 if description is NULL else strlen(description))
    if more >= 0 and texts + more <= room:
        return 0
    pn.data_clear(info)
    if texts <= room:
        return 0
    room -= CONDITION_BYTES
    cut = _shortened(name, min(room, MOST_NAME_BYTES))
    pn.condition_set_name(condition, cut)
    if description is not NULL:
        room -= len(cut)
        cut = _shortened(description, room)
        pn.condition_set_description(condition, cut)
    return 0


def fit_ending(EndpointCore endpoint not None, size_t condition):
    """Shorten the error condition of a close, end or detach, so that the frame is no larger than the peer takes."""
    cdef size_t limit = _limit(endpoint.connection, endpoint.transport)
    _fit(<pn_condition_t *>condition, <ssize_t>limit - ENDING_BYTES)


# States of deliveries
cdef ssize_t _room(pn_delivery_t *delivery) noexcept:
    cdef pn_connection_t *connection = pn.session_connection(pn.link_session(pn.delivery_link(delivery)))
    return <ssize_t>_limit(connection, pn.connection_transport(connection)) - DELIVERY_BYTES


cdef int fit_condition(pn_condition_t *condition, pn_delivery_t *delivery) except -1:
    """Shorten the error condition of a rejected delivery, so that the frame is no larger than the peer takes."""
    return _fit(condition, _room(delivery))


cdef int _fit_value(pn_data_t *data, pn_delivery_t *delivery) except -1:
    cdef ssize_t size = _value(data)
    if size < 0 or size > _room(delivery):
        pn.data_clear(data)
    return 0


cdef int fit_annotations(pn_disposition_t *disposition, pn_delivery_t *delivery) except -1:
    """Drop the annotations of the outcome MODIFIED if they are too large for a frame of the peer, or cannot be encoded.

    The other fields of the outcome stay.
    """
    return _fit_value(pn.disposition_annotations(disposition), delivery)


cdef int fit_data(pn_disposition_t *disposition, pn_delivery_t *delivery) except -1:
    """Drop the data of a delivery state that the engine does not know, such as that of a transaction, if too large.

    Data are too large if they do not fit in a frame of the peer. Data that cannot be encoded are dropped, too.
    """
    return _fit_value(pn.disposition_data(disposition), delivery)
