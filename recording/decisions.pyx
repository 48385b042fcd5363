"""The decision record of a router: to which takers it gave the deliveries of an address, and why not to others.

An operator has an address recorded for a minute at most. Then each decision about one of its deliveries, or to let it
wait, takes a place in a ring of 4,096 structs; newer ones overwrite the oldest. The ring has memory only from the
first recording until `close`.
"""

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from recording.ring_format import OUTCOMES

_VERDICTS = {
    CHOSEN: "chosen",
    FARTHER: "farther",
    BUSIER: "busier",
    OTHER_TURN: "other_turn",
    NO_CREDIT: "no_credit",
    UNDER_WAY: "under_way",
    NO_ROOM: "no_room",
    TOO_LARGE: "too_large",
    HAD_BEFORE: "had_before",
    NOT_FOR_SENDER: "not_for_sender",
    LEAVING: "leaving",
    ORDER: "order",
    LEFT_OUT: "left_out",
}
_ENDS = {OFFERED_AGAIN: "offered_again", TAKEN_BACK: "taken_back"}


cdef class Decisions:
    """The ring of decisions of one node. Times are those of the node's recorder, in us."""

    def __dealloc__(self):
        free(self.ring)

    def open(self):
        """Make the memory of the ring, if it has none. Raises MemoryError."""
        if self.ring is NULL:
            self.ring = <Decision *>calloc(MOST_DECISIONS, sizeof(Decision))
            if self.ring is NULL:
                raise MemoryError()
            self.first = self.newest + 1
        self.waits = {}

    def close(self):
        """Free the memory of the ring, and with it all decisions."""
        free(self.ring)
        self.ring = NULL
        self.waits = None

    cdef Decision *add(
        self, unsigned long long now_us, unsigned int recording, unsigned int inlet, unsigned long long delivery,
        size_t size,
    ) noexcept:  # fmt: skip
        """Return the place of the next decision: about the ``delivery``-th delivery of ``inlet``, of ``size`` bytes.

        NULL without memory for it.
        """
        cdef Decision *decision
        if self.ring is NULL:
            return NULL
        self.newest += 1
        decision = &self.ring[self.newest % MOST_DECISIONS]
        memset(decision, 0, sizeof(Decision))
        decision.number = self.newest
        decision.recording = recording
        decision.at_us = decision.came_us = now_us
        decision.inlet = inlet
        decision.delivery = delivery
        decision.size_bytes = <unsigned int>min(size, <size_t>0xFFFFFFFF)
        return decision

    cdef bint is_waiting(self, unsigned int inlet, unsigned long long delivery) except -1:
        """Return whether this wait of the inlet's delivery has a decision already; if not, it has one from now on."""
        if self.waits is None or self.waits.get(inlet) == delivery:
            return True
        self.waits[inlet] = delivery
        return False

    cdef void end(self, unsigned int number, unsigned long long now_us, size_t outcome) noexcept:
        """Note the outcome of the delivery of decision ``number``, if the ring still has the decision."""
        cdef Decision *decision
        if self.ring is NULL:
            return
        decision = &self.ring[number % MOST_DECISIONS]
        if decision.number == number:
            decision.outcome = <unsigned char>outcome
            decision.ended_us = now_us

    def after(self, unsigned int number, unsigned int recording, int most):
        """Return rows of the first ``most`` decisions of ``recording`` newer than ``number``, oldest first.

        Also return the number of the newest decision that was looked at, to go on from, and how many decisions of any
        recording between the two were overwritten.
        """
        cdef unsigned int oldest, each
        cdef Decision *decision
        cdef list rows = []
        if self.ring is NULL or self.newest < self.first:
            return rows, self.newest, 0
        oldest = self.newest - MOST_DECISIONS + 1 if self.newest - self.first >= MOST_DECISIONS else self.first
        each = max(oldest, number + 1)
        lost = max(0, <long long>oldest - max(<long long>number + 1, <long long>self.first))
        while each <= self.newest and len(rows) < most:
            decision = &self.ring[each % MOST_DECISIONS]
            if decision.recording == recording:
                rows.append(_row_of(decision))
            each += 1
        return rows, each - 1, lost


cdef void list_candidate(
    Decision *decision, unsigned int link, int cost, unsigned int outstanding, int credit, unsigned char verdict
) noexcept:  # fmt: skip
    """Add a candidate to the decision, which lists the first MOST_CANDIDATES, and counts all."""
    cdef Candidate *candidate
    decision.candidate_count += 1
    if verdict == CHOSEN:
        decision.chosen_count += 1
    if decision.listed == MOST_CANDIDATES:
        return
    candidate = &decision.candidates[decision.listed]
    decision.listed += 1
    candidate.link = link
    candidate.cost = cost
    candidate.outstanding = outstanding
    candidate.credit = credit
    candidate.verdict = verdict


cdef dict _row_of(Decision *decision):
    cdef Candidate *candidate
    cdef list candidates = []
    for index in range(decision.listed):
        candidate = &decision.candidates[index]
        candidates.append({
            "link": candidate.link,
            "cost": candidate.cost,
            "outstanding": candidate.outstanding,
            "credit": candidate.credit,
            "verdict": _VERDICTS[candidate.verdict],
        })
    outcome = None
    if decision.outcome:
        outcome = _ENDS.get(decision.outcome) or str(OUTCOMES.get(decision.outcome, "settled"))
    elif decision.ended_us:
        outcome = "settled"
    return {
        "number": decision.number,
        "at_us": decision.at_us,
        "waited_us": decision.at_us - decision.came_us,
        "from": decision.inlet,
        "delivery": decision.delivery,
        "size_bytes": decision.size_bytes,
        "chosen": decision.link or None,
        "chosen_count": decision.chosen_count,
        "candidate_count": decision.candidate_count,
        "candidates": candidates,
        "outcome": outcome,
        "took_us": decision.ended_us - decision.at_us if decision.ended_us else None,
    }
