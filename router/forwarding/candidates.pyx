"""What a group notes in the decision record about the choice of a taker, while its address is recorded.

A choice is noted right after the delivery was started at the chosen taker, so that deliveries of addresses that are not
recorded cost one test; the numbers of the chosen taker are those from before.
"""

from recording.decisions cimport (
    BUSIER, CHOSEN, FARTHER, HAD_BEFORE, LEAVING, LEFT_OUT, NO_CREDIT, NO_ROOM, NOT_FOR_SENDER, ORDER,
    OTHER_TURN, TOO_LARGE, UNDER_WAY, Decision, Decisions, list_candidate,
)
from router.forwarding.ends cimport Inlet, Taker, has_had

cdef enum:
    # Of a group with more takers, the record looks at so many, the chosen one among them.
    MOST_LOOKED_AT = 64


cdef inline int _value(Taker taker, unsigned int outstanding, bint is_closest) noexcept:
    return taker.cost if is_closest else <int>outstanding + taker.cost


cdef unsigned char _obstacle(Taker taker, Inlet inlet, list tried, size_t size) except 255:
    """Return why ``taker`` may not have the inlet's message at all now; 0 if the taker may have it."""
    if taker.is_closing_now:
        return LEAVING
    if not inlet.may_feed(taker):
        return NOT_FOR_SENDER
    if taker.max_message_bytes and size > taker.max_message_bytes:
        return TOO_LARGE
    if tried is not None and has_had(tried, taker):
        return HAD_BEFORE
    return 0


cdef unsigned char _lack(Taker taker, bint needs_room) except 255:
    """Return what ``taker`` lacks to have a delivery now; 0 if it lacks nothing."""
    if taker.moving is not None:
        return UNDER_WAY
    if taker.credit_count <= 0:
        return NO_CREDIT
    return NO_ROOM if needs_room and not taker.link.is_writable_now() else 0


cdef Taker _base_of(dict takers, Taker chosen, unsigned long long turn):
    """Return the taker beside which the stream ``chosen`` is; ``chosen`` itself if it is no stream."""
    cdef Taker taker
    if not chosen.is_stream:
        return chosen
    for taker in takers:
        if taker.is_ours and (taker.egress == chosen.egress if chosen.egress is not None else taker.last_turn == turn):
            return taker
    return chosen


cdef unsigned int note_choice(
    unsigned int recording, dict takers, Inlet inlet, Taker chosen, unsigned long long turn, list tried, size_t size,
    bint is_closest, int nearest,
) except? 0:  # fmt: skip
    """Note that the inlet's delivery went to ``chosen``; return the number of the decision, 0 for none.

    The inlet has counted the delivery, and ``chosen`` has begun it. ``nearest``: the cost of the takers that alone may
    have the delivery, below 0 for any. ``tried``: takers that had the delivery before, None for a first choice.
    ``turn``: the last turn that the group has given to a taker.
    """
    return _note(recording, takers, inlet, chosen, turn, tried, size, is_closest, nearest, 1)


cdef unsigned int note_again(
    unsigned int recording, dict takers, Inlet inlet, Taker chosen, unsigned long long turn, list tried, size_t size,
    bint is_closest, int nearest,
) except? 0:  # fmt: skip
    """As `note_choice`, of a returned delivery that ``chosen`` is about to begin; which one of the inlet is not known.
    """
    return _note(recording, takers, inlet, chosen, turn, tried, size, is_closest, nearest, 0)


cdef unsigned int _note(
    unsigned int recording, dict takers, Inlet inlet, Taker chosen, unsigned long long turn, list tried, size_t size,
    bint is_closest, int nearest, int begun,
) except? 0:  # fmt: skip
    cdef Decisions record = inlet.recorder.decisions
    cdef Decision *decision = record.add(
        inlet.recorder.now_us, recording, inlet.number, inlet.deliveries_in if begun else 0, size
    )
    cdef Taker taker, base
    cdef unsigned char verdict
    cdef int best, value, count = 0
    if decision is NULL:
        return 0
    if begun:
        decision.came_us = min(inlet.came_us, decision.at_us)
    decision.link = chosen.number
    base = _base_of(takers, chosen, turn)
    if base is not chosen:
        begun = 0
    best = _value(base, base.unsettled_count - begun, is_closest)
    list_candidate(decision, base.number, base.cost, base.unsettled_count - begun, base.credit_count + begun, CHOSEN)
    for taker in takers:
        if taker is base:
            continue
        count += 1
        if count >= MOST_LOOKED_AT:
            decision.candidate_count = <unsigned int>len(takers)
            break
        verdict = _obstacle(taker, inlet, tried, size)
        if not verdict and nearest >= 0 and taker.cost > nearest:
            verdict = FARTHER
        verdict = verdict or _lack(taker, tried is None)
        if not verdict:
            value = _value(taker, taker.unsettled_count, is_closest)
            if value == best:
                verdict = OTHER_TURN
            elif value < best:
                verdict = ORDER
            else:
                verdict = FARTHER if is_closest else BUSIER
        list_candidate(decision, taker.number, taker.cost, taker.unsettled_count, taker.credit_count, verdict)
    return decision.number


cdef int note_wait(unsigned int recording, dict takers, Inlet inlet, size_t size, int nearest) except -1:
    """Note, once, that the head of the inlet has to wait, and what each taker lacks."""
    cdef Decisions record = inlet.recorder.decisions
    cdef Decision *decision
    if record.is_waiting(inlet.number, inlet.deliveries_in + 1):
        return 0
    decision = record.add(inlet.recorder.now_us, recording, inlet.number, inlet.deliveries_in + 1, size)
    if decision is not NULL:
        _list_all(decision, takers, inlet, size, nearest)
    return 0


cdef unsigned int note_refusal(unsigned int recording, dict takers, Inlet inlet, size_t size, int nearest) except? 0:
    """Note that the inlet's last delivery, which the inlet has counted, is refused; return the decision's number."""
    cdef Decisions record = inlet.recorder.decisions
    cdef Decision *decision = record.add(
        inlet.recorder.now_us, recording, inlet.number, inlet.deliveries_in, size
    )
    if decision is NULL:
        return 0
    _list_all(decision, takers, inlet, size, nearest)
    return decision.number


cdef int _list_all(Decision *decision, dict takers, Inlet inlet, size_t size, int nearest) except -1:
    cdef Taker taker
    cdef unsigned char verdict
    cdef int count = 0
    for taker in takers:
        count += 1
        if count > MOST_LOOKED_AT:
            decision.candidate_count = <unsigned int>len(takers)
            break
        verdict = _obstacle(taker, inlet, None, size)
        if not verdict and nearest >= 0 and taker.cost > nearest:
            verdict = FARTHER
        verdict = verdict or _lack(taker, True) or ORDER
        list_candidate(decision, taker.number, taker.cost, taker.unsettled_count, taker.credit_count, verdict)
    return 0


cdef unsigned int note_copies(
    unsigned int recording, list takers, Inlet inlet, list ready, size_t size, bint is_begun
) except? 0:  # fmt: skip
    """Note to which of the ``takers`` of a multicast a copy of the inlet's delivery goes: to those of ``ready``.

    If not ``is_begun``, the delivery waits, for the takers that lack something; that is noted once. Return the number
    of the decision, 0 for none.
    """
    cdef Decisions record = inlet.recorder.decisions
    cdef unsigned long long place = inlet.deliveries_in + (0 if is_begun else 1)
    cdef Decision *decision
    cdef Taker taker
    cdef unsigned char verdict
    cdef bint is_ready
    cdef int count = 0
    if not is_begun and record.is_waiting(inlet.number, place):
        return 0
    decision = record.add(inlet.recorder.now_us, recording, inlet.number, place, size)
    if decision is NULL:
        return 0
    if is_begun:
        decision.came_us = min(inlet.came_us, decision.at_us)
    for taker in takers:
        count += 1
        if count > MOST_LOOKED_AT:
            decision.candidate_count, decision.chosen_count = <unsigned int>len(takers), <unsigned int>len(ready)
            break
        is_ready = is_begun and taker in ready
        if is_ready:
            verdict = CHOSEN
            decision.link = decision.link or taker.number
        else:
            verdict = LEAVING if taker.is_closing_now else _lack(taker, not is_begun)
            if taker.max_message_bytes and size > taker.max_message_bytes:
                verdict = TOO_LARGE
            if taker.is_stalled or taker.is_skipped:
                verdict = LEFT_OUT
            verdict = verdict or (LEFT_OUT if is_begun else ORDER)
        list_candidate(
            decision, taker.number, taker.cost, taker.unsettled_count - (1 if is_ready else 0),
            taker.credit_count + (1 if is_ready else 0), verdict,
        )  # fmt: skip
    return decision.number


cdef unsigned int note_untaken(unsigned int recording, Inlet inlet, size_t size, size_t outcome) except? 0:
    """Note that the inlet's last delivery, which the inlet has counted, went to no taker, and its outcome, 0 if open.
    """
    cdef Decisions record = inlet.recorder.decisions
    cdef Decision *decision = record.add(
        inlet.recorder.now_us, recording, inlet.number, inlet.deliveries_in, size
    )
    if decision is NULL:
        return 0
    if outcome:
        record.end(decision.number, decision.at_us, outcome)
    return decision.number
