cdef enum:
    # Number of decisions in the ring, a power of 2, and the most candidates that one decision lists.
    MOST_DECISIONS = 4096
    MOST_CANDIDATES = 8
    # Added to the record level of a delivery with a decision: its outcome is noted there, too.
    DECIDED = 4


cdef enum:
    # Why a taker was chosen, or was not.
    CHOSEN = 1
    FARTHER = 2
    BUSIER = 3
    OTHER_TURN = 4
    NO_CREDIT = 5
    UNDER_WAY = 6
    NO_ROOM = 7
    TOO_LARGE = 8
    HAD_BEFORE = 9
    NOT_FOR_SENDER = 10
    LEAVING = 11
    ORDER = 12
    LEFT_OUT = 13


cdef enum:
    # Ways of a decision to end beside the outcome of the delivery: another decision came in its place, and the
    # delivery went back to its inlet before a byte was written.
    OFFERED_AGAIN = 200
    TAKEN_BACK = 201


ctypedef struct Candidate:
    unsigned int link
    int cost
    unsigned int outstanding
    int credit
    unsigned char verdict


ctypedef struct Decision:
    unsigned long long at_us
    unsigned long long came_us
    unsigned long long ended_us
    unsigned long long delivery
    unsigned int number
    unsigned int recording
    unsigned int inlet
    unsigned int link
    unsigned int size_bytes
    unsigned int candidate_count
    unsigned int chosen_count
    unsigned char listed
    unsigned char outcome
    Candidate candidates[MOST_CANDIDATES]


cdef class Decisions:
    cdef Decision *ring
    # The number of the newest decision; numbers begin at 1, and 0 is no decision.
    cdef readonly unsigned int newest
    # The number of the oldest decision since the ring was opened.
    cdef unsigned int first
    # For each inlet with a decision to wait: the delivery that waits, by its count on the inlet.
    cdef dict waits

    cdef Decision *add(
        self, unsigned long long now_us, unsigned int recording, unsigned int inlet, unsigned long long delivery,
        size_t size,
    ) noexcept  # fmt: skip
    cdef bint is_waiting(self, unsigned int inlet, unsigned long long delivery) except -1
    cdef void end(self, unsigned int number, unsigned long long now_us, size_t outcome) noexcept


cdef void list_candidate(
    Decision *decision, unsigned int link, int cost, unsigned int outstanding, int credit, unsigned char verdict
) noexcept  # fmt: skip
