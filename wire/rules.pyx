"""Rules of AMQP about handles, counts and states, beyond the form of a performative, that the engine does not check.

A frame with an unknown channel or handle passes, since the engine reports that fault itself.
"""

from libc.string cimport memchr

from wire.codec.composites cimport bytes_at, is_true_at, number_at
from wire.codec.scan cimport AS_LIST0, AS_LIST8, AS_STRING32, AS_STRING8, AS_ULONG, big_endian
from wire.peers cimport key_of

from wire.codec import table
from wire.codec.frames import AmqpFrame, CompositeValue, decode_frame, encode_frame, error
from wire.errors import ConnectionFault, LinkError

cdef enum:
    MOST_STOLEN = 1000
    MOST_CREDIT = 0x7FFFFFFF
    LEAST_MAX_FRAME_BYTES = 512
    LEAST_IDLE_TIMEOUT_MS = 100

cdef enum:
    RECEIVED = 0x23
    DECLARED = 0x33

FRAMING = "amqp:connection:framing-error"
_STOLEN = "amqp:link:stolen"
_OF_SESSIONS = ("next-incoming-id", "incoming-window", "next-outgoing-id", "outgoing-window")
_STATES = {RECEIVED: "received", DECLARED: "declared"}


cdef class Rules(Peers):
    """Checks the performatives of one peer against the rules, with what earlier frames told about sessions and links.

    Each ``_on_`` method returns a verdict on its frame: GOOD, BAD with ``fault``, or REPLACED by ``replacement``.
    """

    cdef int _on_open(self, unsigned int channel, Fields *fields) except -1:
        if self.is_open:
            return self._blame("amqp:illegal-state", "a second open came")
        if channel != 0:
            return self._blame(FRAMING, f"an open came on channel {channel}, expected 0")
        if _has_nul(fields.at[0]) or _has_nul(fields.at[1]):
            return self._blame_nul("open.hostname" if _has_nul(fields.at[1]) else "open.container-id")
        if fields.at[2] is not NULL and number_at(fields.at[2]) == 0:  # 1 to 511 pass, and count as 512
            return self._blame_little("open.max-frame-size", 0, LEAST_MAX_FRAME_BYTES)
        if fields.at[4] is not NULL and 0 < number_at(fields.at[4]) < LEAST_IDLE_TIMEOUT_MS:
            return self._blame_little("open.idle-time-out", number_at(fields.at[4]), LEAST_IDLE_TIMEOUT_MS)
        self.is_open = True
        return GOOD

    cdef int _on_begin(self, unsigned int channel, Fields *fields) except -1:
        cdef PeerSession session
        if channel > self.channel_max:
            return GOOD
        if self.session_at(channel) is not None:
            return self._blame("amqp:illegal-state", f"begin: channel {channel} is in use")
        session = PeerSession(channel)
        if fields.at[0] is not NULL:
            session.answered_channel = number_at(fields.at[0])
            if session.answered_channel not in self.own_windows:
                return self._blame(
                    "amqp:invalid-field",
                    f"begin.remote-channel: {session.answered_channel}, but no session on that channel waits "
                    "for an answer",
                )
        session.next_incoming_id = number_at(fields.at[1])
        session.window_end = number_at(fields.at[2])
        self.add_session(session)
        return GOOD

    cdef int _on_attach(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1:
        cdef PeerSession session = self.session_at(channel)
        cdef PeerLink link, stolen
        cdef unsigned int count
        cdef unsigned int handle = number_at(fields.at[1])
        cdef bint is_sender = not is_true_at(fields.at[2])
        if _has_nul(fields.at[0]):
            return self._blame_nul("attach.name")
        if _has_nul(_address_in(fields.at[5])):
            return self._blame_nul("attach.source.address")
        if _has_nul(_address_in(fields.at[6])):
            return self._blame_nul("attach.target.address")
        if is_sender and fields.at[9] is NULL:
            return self._blame("amqp:invalid-field", "attach.initial-delivery-count is missing: a sender must set it")
        if session is None or handle > MOST_CREDIT:
            return GOOD
        if session.link_at(handle) is not None:
            return self._blame("amqp:session:handle-in-use", f"attach.handle: {handle} is in use on channel {channel}")
        count = number_at(fields.at[9]) if is_sender else 0
        link = PeerLink(session, handle, key_of(fields.at[0], is_sender), is_sender, count)
        stolen = self.add_link(link)
        return GOOD if stolen is None else self._steal(stolen, frame, size)

    cdef int _on_flow(self, unsigned int channel, Fields *fields, const unsigned char *frame, size_t size) except -1:
        cdef PeerSession session = self.session_at(channel)
        cdef PeerLink link
        cdef unsigned int credit = 0
        cdef int verdict = GOOD
        cdef bint has_echo
        if session is None:
            return GOOD
        session.window_end = number_at(fields.at[1])
        if fields.at[0] is not NULL:
            session.window_end += <unsigned int>number_at(fields.at[0])
        has_echo = fields.at[9] is not NULL and is_true_at(fields.at[9])
        if fields.at[4] is NULL:
            if has_echo and not session.wants_flow:
                session.wants_flow = True
                self.want_flow(session)
            return GOOD
        link = session.link_at(number_at(fields.at[4]))
        if link is None:
            return GOOD
        if link.is_stolen:
            return self._replace(_without_link(frame[:size]))
        if fields.at[6] is not NULL:
            credit = number_at(fields.at[6])
        if credit > MOST_CREDIT:
            # The engine's credit is a signed number, so the engine gets the flow with the largest credit that fits.
            credit = MOST_CREDIT
            verdict = self._replace(_with_most_credit(frame[:size], fields.at[6] + 1 - frame))
        if not link.is_sender:
            link.credit_end = credit + (0 if fields.at[5] is NULL else <unsigned int>number_at(fields.at[5]))
        elif fields.at[5] is not NULL and <int>(<unsigned int>number_at(fields.at[5]) - link.delivery_count) > 0:
            link.delivery_count = number_at(fields.at[5])
        if not (link.wants_flow or link.wants_drained):
            link.wants_flow = has_echo
            link.wants_drained = not link.is_sender and fields.at[8] is not NULL and is_true_at(fields.at[8])
            if link.wants_flow or link.wants_drained:
                self.want_flow(link)
        elif has_echo:
            link.wants_flow = True
        return verdict

    cdef int _on_transfer(self, unsigned int channel, Fields *fields) except -1:
        cdef PeerSession session = self.session_at(channel)
        cdef unsigned int handle = number_at(fields.at[0])
        cdef PeerLink link = None if session is None else session.link_at(handle)
        if link is None:
            return GOOD
        if not link.is_sender:
            return self._blame("amqp:not-allowed", f"transfer.handle: {handle} is a link where the peer receives")
        if link.is_stolen:
            return self._blame(
                "amqp:session:unattached-handle", f"transfer.handle: another attach has replaced the link of {handle}"
            )
        if not link.is_partial:
            if fields.at[1] is NULL or fields.at[2] is NULL:
                what = "transfer.delivery-id" if fields.at[1] is NULL else "transfer.delivery-tag"
                return self._blame("amqp:invalid-field", f"{what} is missing: a first transfer must set it")
            link.delivery_count += 1
            self._judge(link, fields)
        link.is_partial = (
            fields.at[5] is not NULL and is_true_at(fields.at[5])
            and not (fields.at[9] is not NULL and is_true_at(fields.at[9]))
        )
        session.next_incoming_id += 1
        return GOOD

    cdef int _judge(self, PeerLink link, Fields *fields) except -1:
        """Set the link's fault, with which its owner ends the link, if a first transfer has an unsupported field.

        Unsupported are a message-format other than 0, and the states received and declared.
        """
        cdef const unsigned char *state = fields.at[7]
        cdef unsigned char code
        if fields.at[3] is not NULL and number_at(fields.at[3]) != 0:
            what = f"transfer.message-format: expected 0, got {number_at(fields.at[3])}"
            link.fault = LinkError("amqp:not-implemented", what)
        elif state is not NULL:
            code = state[9] if state[1] == AS_ULONG else state[2]
            if code == RECEIVED or code == DECLARED:
                what = f"transfer.state: expected an outcome or none, got {_STATES[code]}"
                link.fault = LinkError("amqp:not-implemented", what)
        return 0

    cdef int _on_disposition(self, Fields *fields) except -1:
        cdef unsigned int first = number_at(fields.at[1]), last = first
        if fields.at[2] is not NULL:
            last = number_at(fields.at[2])
        if last - first > <unsigned int>0x7FFFFFFF:  # serial numbers [2.8.10]
            return self._blame("amqp:invalid-field", f"disposition.last: {last} is before the first, {first}")
        return GOOD

    cdef int _on_detach(self, unsigned int channel, Fields *fields) except -1:
        cdef PeerSession session = self.session_at(channel)
        cdef unsigned int handle = number_at(fields.at[0])
        cdef PeerLink link = None if session is None else session.link_at(handle)
        if link is None:
            return GOOD
        session.drop(handle)
        if link.is_stolen:
            self.stolen_count -= 1
            return self._replace(b"")
        self.forget(link)
        return GOOD

    cdef int _on_end(self, unsigned int channel) except -1:
        cdef PeerSession session = self.session_at(channel)
        cdef PeerLink link
        if session is None:
            return GOOD
        for link in session.links():
            self.stolen_count -= link.is_stolen
        self.drop_session(session)
        return GOOD

    cdef int _replace(self, bytes replacement) except -1:
        self.replacement = replacement
        return REPLACED

    cdef int _steal(self, PeerLink old, const unsigned char *frame, size_t size) except -1:
        """Have the engine read a detach of the link ``old`` before the peer's attach of the same name. [2.6.1]

        The peer's later frames for ``old`` are kept from the engine. Too many such attaches without a detach by the
        peer are a fault.
        """
        self.stolen_count += 1
        if self.stolen_count > MOST_STOLEN:
            return self._blame("amqp:resource-limit-exceeded", "the peer attaches links again without a detach")
        old.is_stolen = True
        reason = error(_STOLEN, f"link {old.name!r} was attached again")
        fields = {"handle": old.handle, "closed": False, "error": reason}
        detach = encode_frame(AmqpFrame(old.session.channel, CompositeValue(table.DETACH, fields)))
        return self._replace(detach + frame[:size])

    def _blame_nul(self, place):
        return self._blame("amqp:invalid-field", f"{place}: the name contains a zero byte")

    def _blame_little(self, place, value, least):
        return self._blame("amqp:invalid-field", f"{place}: expected at least {least}, got {value}")

    cdef int _blame(self, str condition, str sentence) except -1:
        self.fault = ConnectionFault(condition, sentence)
        return BAD


cdef bint _has_nul(const unsigned char *text) noexcept:
    """Say whether the string at ``text`` has a zero byte, where the engine, with C strings, would cut it.

    False without a string (NULL).
    """
    cdef size_t size
    if text is NULL:
        return False
    text = bytes_at(text, &size)
    return memchr(text, 0, size) is not NULL


cdef const unsigned char *_address_in(const unsigned char *terminus) noexcept:
    """Return the place of the address in an encoded terminus; NULL without a terminus or address.

    NULL also for a coordinator, which has no address.
    """
    cdef const unsigned char *at = terminus
    if at is NULL:
        return NULL
    at += 1 + (9 if at[1] == AS_ULONG else 2)
    if at[0] == AS_LIST0 or big_endian(at + (2 if at[0] == AS_LIST8 else 5), 1 if at[0] == AS_LIST8 else 4) == 0:
        return NULL
    at += 3 if at[0] == AS_LIST8 else 9
    return at if at[0] == AS_STRING8 or at[0] == AS_STRING32 else NULL


def _without_link(bytes frame):
    """Return a flow frame with only the session's fields of ``frame``, for a flow of a link that was replaced."""
    flow = decode_frame(frame)
    fields = {name: flow.performative[name] for name in _OF_SESSIONS if flow.performative[name] is not None}
    return encode_frame(AmqpFrame(flow.channel, CompositeValue(table.FLOW, fields)))


def _with_most_credit(bytes frame, size_t offset):
    return frame[:offset] + (<int>MOST_CREDIT).to_bytes(4, "big") + frame[offset + 4 :]
