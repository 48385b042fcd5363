# A clock of droughts, the times in which a link has no credit, as summed up since the last call of `take_us`.
# Times are us of the monotonic clock.

ctypedef struct Drought:
    bint is_on
    unsigned long long since_us
    # Sum of the droughts that have ended since the last call of `take_us`.
    unsigned long long before_us


cdef inline bint turn(Drought *drought, bint is_on, unsigned long long now_us) noexcept:
    """Note whether a link has no credit now (``is_on``); return True if the link had credit before, or vice versa."""
    if drought.is_on == is_on:
        return False
    drought.is_on = is_on
    if is_on:
        drought.since_us = now_us
    else:
        drought.before_us += now_us - drought.since_us
    return True


cdef inline unsigned long long take_us(Drought *drought, unsigned long long now_us) noexcept:
    cdef unsigned long long found = drought.before_us
    if drought.is_on:
        found += now_us - drought.since_us
        drought.since_us = now_us
    drought.before_us = 0
    return found
