from router.forwarding.head cimport Head
from wire.core cimport DeliveryOwner, OutgoingCore, Waiter
from wire.drought cimport Drought
from wire.proton cimport pn_delivery_t

cdef enum:
    # Ways of an inlet's deliveries, when there are links beside each other: one that all share, one that all share of a
    # multicast's for what is sent settled, and one of its own for what is large.
    SHARED_WAY
    SETTLED_WAY
    LARGE_WAY
    # Nothing goes there any more: a circuit in place of which there is one over another path.
    LEFT_WAY
    # Nor there, and nobody waits for what it has.
    FORSAKEN_WAY


cdef class Group:
    # Sums over its members, kept as they change: deliveries.
    cdef int promised_to_producers
    cdef int promised_to_circuits
    cdef int credit_of_locals
    cdef int credit_of_circuits
    # Raised whenever a taker comes, goes or is about to.
    cdef unsigned int version
    # How much is recorded of what comes to it (`wire.records`).
    cdef public unsigned char record_level
    # When a circuit's sender says RELEASED, it is for this router alone (`recall`).
    cdef bint takes_recalls
    # What comes to it lies in a queue: a consumer that leaves in order gives back what it has without an outcome.
    cdef bint is_of_queue

    cdef int pump(self, Inlet inlet) except -1
    cdef int on_moved(self, Taker taker) except -1
    cdef int on_credit(self, Taker taker) except -1
    cdef int on_blocked(self, Taker taker) except -1
    cdef int on_taker_room(self, Taker taker) except -1
    cdef int on_returned(self, Inlet inlet) except -1
    cdef int on_sender_flow(self, Inlet inlet) except -1
    cdef bint retry(self, Carrier carrier) except -1
    cdef bint retransmits(self, Inlet inlet) except -1
    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1
    cdef int on_returned_unread(self, Inlet inlet) except -1
    cdef int on_inlet_room(self, Inlet inlet) except -1
    cdef bint take_back(self, Carrier carrier) except -1
    cdef int on_given_back(self, Taker taker) except -1
    cdef int on_too_large(self, Inlet inlet, size_t size) except -1
    cdef int on_undeliverable(self, Inlet inlet) except -1


cdef class Carrier(Waiter):
    cdef Inlet inlet
    cdef Taker taker
    cdef pn_delivery_t *incoming
    cdef pn_delivery_t *outgoing
    cdef unsigned long long tie
    cdef Carrier newer_in
    cdef Carrier older_in
    cdef Carrier newer_out
    cdef Carrier older_out
    # To its end, as was seen when the engine was about to forget it.
    cdef bint was_written

    cdef bint note_taker(self) except -1
    cdef bint goes_to(self, Taker taker) noexcept
    cdef int advance(self) except -1
    cdef bint read_rest(self) except -1
    cdef bint is_unsent(self) noexcept
    cdef bint may_be_given_back(self) noexcept
    cdef int on_taker_disposition(self) except -1
    cdef int on_sender_disposition(self) except -1
    cdef int on_inlet_lost(self, bint comes_again) except -1
    cdef int on_taker_lost(self, bint is_unwritten) except -1


cdef class Inlet(Head):
    cdef readonly Group group
    cdef readonly int limit
    # Of its deliveries, on average of the last few.
    cdef readonly long long usual_bytes
    cdef int promised_count
    cdef readonly bint is_circuit
    # From an edge router, for which this one is the ingress; `shuns`: takers at which edge are none of its (0: none).
    cdef public bint is_edge
    cdef public int shuns
    # Router id at the other end of a circuit.
    cdef public object ingress
    # A circuit of large deliveries, beside one that is shared.
    cdef public bint is_stream
    cdef public bint is_draining
    # With its link or connection: nothing more of it goes on.
    cdef public bint is_lost
    # Its group has it among its inlets.
    cdef bint is_member
    # Its ingress recalled what waited here: no float until a consumer has credit.
    cdef bint is_resting
    # The last one's, and whether there may be deliveries on another.
    cdef int way
    cdef bint has_other_ways
    # Circuits with deliveries of which it does not know whether they were passed on, each with its barrier (`order`) or None.
    cdef dict unheard
    # Those of them, for what a router sends here, that have some of which no outcome will tell.
    cdef dict settled_to
    # When the barrier at its head is answered in any case; 0: there is none.
    cdef double barrier_due_s
    cdef Carrier moving
    cdef Carrier newest
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_in
    # For records: its sender is without credit; to be told of when the second is over.
    cdef Drought drought
    cdef bint is_restless
    # Likewise: something moved on it since it was looked at.
    cdef bint has_moved
    # Credit sharing: deliveries_in when it was last looked at, and when its credit was taken back (-1: it was not).
    cdef long long seen_at
    cdef long long idle_at
    # How many producers it stands for: its share of turns and of scarce credit. `turns` it took of those that are due.
    cdef int weight
    cdef int turns
    # Multicast: what came last was settled; its takers, as of this version of the group.
    cdef bint sends_settled
    cdef list audience
    cdef bint is_audience_settled
    cdef unsigned int audience_version
    # When each delivery came that waits here, and the one that left last: microseconds. None: nothing waits.
    cdef object held_since
    cdef unsigned long long came_us
    # Fans that were begun: what comes back keeps its place.
    cdef unsigned long long begun_count

    cdef int note_held(self) except -1
    cdef int leave_line(self) except -1
    cdef int return_to_line(self, unsigned long long came_us) except -1
    cdef int limit_now(self) noexcept
    cdef int weigh(self, size_t size) except -1
    cdef int hold(self, Carrier carrier) except -1
    cdef int drop(self, Carrier carrier) except -1
    cdef int set_promised(self, int count) except -1
    cdef bint is_second(self) noexcept
    cdef bint may_go_on_now(self) except -1
    cdef bint is_from_client(self) noexcept
    cdef bint is_of_queue(self) noexcept
    cdef int pop(self) except -1
    cdef int drop_head(self) except -1
    cdef int on_unheard(self, Taker taker) except -1
    cdef int on_unheard_settled(self, Taker taker) except -1
    cdef int on_settled(self) except -1
    cdef int note_credit(self) except -1
    cdef int top_up(self, int count) except -1
    cdef int waiting_now(self) noexcept
    cdef int held_now(self) noexcept
    cdef int reduce(self, int count) except -1
    cdef bint needs_float(self) noexcept
    cdef int hear_weight(self, pn_delivery_t *delivery) noexcept
    cdef bint is_from_node(self) noexcept
    cdef bint may_feed(self, Taker taker) noexcept


cdef class Taker(DeliveryOwner):
    cdef readonly unsigned int number
    cdef readonly OutgoingCore link
    cdef readonly Group group
    # Of a circuit it may change, but not to 0.
    cdef public int cost
    # Number of the connection to the edge router that it leads to; 0: to none.
    cdef public int edge
    cdef int credit_count
    cdef public bint presettles
    cdef bint is_closing_now
    cdef readonly object upstream
    # The largest that its peer takes; 0: any.
    cdef size_t max_message_bytes
    cdef readonly bint is_stream
    cdef int way
    # A link of ours that all inlets use, or a stream beside one: a circuit's, or one to a broker.
    cdef readonly bint is_ours
    cdef bint is_broker
    cdef bint wants_outcomes  # what came settled goes there unsettled, too
    # Router id at the other end of an anycast circuit.
    cdef public object egress
    # Of a circuit from here to there, or the tree of a branch of ours; None of all else.
    cdef public object path
    # A branch of ours that gave something back: it leads nowhere now, and is to be made anew.
    cdef readonly bint is_spent
    # Its peer left in order, by a detach, an end or a close without an error: what it has no outcome for was not tried.
    cdef bint has_left_in_order
    # A branch of another router's tree: the routers it leads to; and whether none of them has a taker any more.
    cdef public object behind
    cdef public bint is_deserted
    # Called before each delivery is started here, when it is not None.
    cdef public object on_start
    # Likewise, before the end of each delivery goes there.
    cdef public object on_finish
    cdef bint is_member
    cdef bint is_stalled
    # Multicast: left out of what is sent settled.
    cdef bint is_skipped
    cdef readonly bint had_credit
    # Multicast: while others wait for it, and while what is sent settled does (`watch`).
    cdef object stall_watch
    cdef object skip_watch
    cdef readonly unsigned long long copies_missed
    # Of those, what was recorded.
    cdef unsigned long long copies_told
    # For records: how much there is of it; something moved on it since it was looked at.
    cdef readonly unsigned char record_level
    cdef bint has_moved
    # Its receiver has asked for a drain; how often since that was recorded.
    cdef bint is_asked
    cdef unsigned int drains
    cdef Carrier moving
    cdef Carrier newest
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_out
    cdef unsigned long long last_tag
    # How many producers are behind what this router sends here.
    cdef int weight
    cdef unsigned long long last_turn

    cdef int hold(self, Carrier carrier) except -1
    cdef int drop(self, Carrier carrier) except -1
    cdef list _oldest_first(self)
    cdef bint _let_go(self, Carrier carrier) except -1
    cdef int _note_written_in_session(self) except -1
    cdef int miss(self) except -1
    cdef int note_move(self) except -1
    cdef int note_drain(self, bint has_more) except -1
    cdef int set_credit(self, int credit) except -1
    cdef int sync(self) except -1
    cdef pn_delivery_t *start(self) except NULL
    cdef bint can_take_now(self) noexcept
    cdef bint is_near_now(self) noexcept
    cdef int join(self) except -1
    cdef int leave(self) except -1


cdef Carrier carrier_at(pn_delivery_t *delivery)
