from router.forwarding.head cimport InletHead
from wire.core cimport DeliveryOwner, OutgoingCore, Waiter
from wire.drought cimport Drought
from wire.proton cimport pn_delivery_t
from recording.records cimport Recorder

cdef enum:
    # The ways of deliveries to the same egress, each over another link: shared deliveries, pre-settled deliveries of a
    # multicast, and large deliveries of a single inlet.
    SHARED_WAY
    SETTLED_WAY
    LARGE_WAY
    # Way of a replaced circuit: later deliveries go over another path, and wait until this circuit has passed on its
    # own.
    LEFT_WAY
    # Way of a replaced circuit for whose deliveries later deliveries no longer wait.
    FORSAKEN_WAY
    # Way of a circuit that addresses of a pattern share: an address that is set apart goes on over circuits of its own.
    PATTERN_WAY


cdef class Group:
    # Sums over the group's inlets and takers, in deliveries, updated at each change.
    cdef int promised_to_producers
    cdef int promised_to_circuits
    cdef int credit_of_locals
    cdef int credit_of_circuits
    # Incremented whenever a taker comes, goes or is about to go.
    cdef unsigned int version
    # The node's recorder, and the record level of the group's deliveries (`recording.records`).
    cdef readonly Recorder recorder
    cdef readonly unsigned char record_level
    # True if the addresses of the group share links, and some may be full: the broker tells of full ones.
    cdef bint may_be_full
    # True at the ingress of a circuit that addresses of an anycast pattern share (`shared_anycast`).
    cdef bint is_to_egress
    # True if an ingress router may recall deliveries from this group by the outcome RELEASED (`recall`).
    cdef bint takes_recalls
    # The groups of the filters that match the group's address and have consumers here; None without any.
    cdef list filters
    # True for the group of a filter (`FilterGroup`), whose takers get a copy with the address of the delivery.
    cdef bint is_of_filter
    # For the group of a filter: the credit promised by the groups of all addresses that the filter matches.
    cdef int promised_by_members
    # The address of the deliveries as consumers of filters are told it, in UTF-8, and whether an empty `to` gets it.
    cdef bytes published
    cdef bint fills_to
    # True if the deliveries come from a queue: a consumer that leaves in order gives back deliveries without an
    # outcome.
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
    cdef int on_ranked(self, Taker taker) except -1
    cdef int on_copy_aborted(self) except -1
    cdef int on_barrier_blocked(self) except -1
    cdef bytes name_now(self)


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
    # True if the delivery was written to its end before the engine forgot this.
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


cdef class Inlet(InletHead):
    cdef readonly Group group
    cdef readonly int limit
    # Average size, in bytes, of the last few deliveries.
    cdef readonly long long usual_bytes
    cdef int promised_count
    cdef readonly bint is_circuit
    # `is_edge`: the inlet comes from an edge router, whose ingress is this router. `shuns`: number of the connection to
    # the edge router whose takers must not receive the inlet's deliveries; 0 for none.
    cdef public bint is_edge
    cdef public int shuns
    # For a circuit, the id of the ingress router.
    cdef public object ingress
    # True for a circuit for large deliveries, beside a shared circuit.
    cdef public bint is_stream
    cdef public bint is_draining
    # True once the inlet is lost with its link or connection: its deliveries are not passed on.
    cdef public bint is_lost
    # True while the inlet is one of the group's inlets.
    cdef bint is_member
    # True if the ingress recalled the deliveries that wait here: the inlet gets no float until a consumer has credit.
    cdef bint is_resting
    # The way of the last delivery, and whether earlier deliveries on other ways may not have been passed on yet.
    cdef int way
    cdef bint has_other_ways
    # Circuits that may not have passed on all of the inlet's deliveries, each with the barrier sent there (`order`) or
    # None.
    cdef dict unheard
    # For an inlet from a router: the circuits of `unheard` that have pre-settled deliveries, which get no outcome.
    cdef dict settled_to
    # Time at which the barrier at the head is answered in any case; 0 without a barrier there.
    cdef double barrier_due_s
    cdef Carrier moving
    cdef Carrier newest
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_in
    # For link logs: time that the sender was without credit, and whether the inlet waits to be recorded at the second's
    # end.
    cdef Drought drought
    cdef bint is_restless
    # For link logs: whether deliveries have moved since the inlet was last recorded.
    cdef bint has_moved
    # For credit sharing: deliveries_in at the last check, and the time in s at which credit was last taken back (-1:
    # never).
    cdef long long seen_at
    # Time in s of the last check that found new deliveries: several sharings may check an inlet of a multicast.
    cdef double seen_s
    cdef long long idle_at
    # `deliveries_in` less the recent deliveries, which are halved every 50 ms, and the time in s of the last halving.
    cdef long long recent_from
    cdef double recent_s
    # The list of inlets short of credit (`credit.ShortInlets`) that has this inlet, and its neighbors there; else None.
    cdef object short_in
    cdef Inlet short_before
    cdef Inlet short_behind
    # Number of producers behind the inlet, which is its share of turns and of scarce credit; `turns`: the turns taken
    # of the present share.
    cdef int weight
    cdef int turns
    # For multicast: whether the last delivery was pre-settled, and the inlet's takers, valid for this version of the
    # group.
    cdef bint sends_settled
    cdef list audience
    cdef bint is_audience_settled
    cdef unsigned int audience_version
    # Arrival times of the waiting deliveries (None if none waits), and of the last delivery that left, in us.
    cdef object held_since
    cdef unsigned long long came_us
    # Number of deliveries begun as fans, by which a delivery that comes back gets its old place.
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
    cdef bint on_late(self, Carrier carrier) except -1
    cdef bint retry_apart(self, Carrier carrier) except -1
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
    cdef int recent_count(self, double now) noexcept
    cdef int hear_weight(self, pn_delivery_t *delivery) noexcept
    cdef bint is_from_node(self) noexcept
    cdef bint may_feed(self, Taker taker) noexcept


cdef class Taker(DeliveryOwner):
    cdef readonly unsigned int number
    cdef readonly OutgoingCore link
    cdef readonly Group group
    # The cost of a circuit, or 0 for a local taker; a circuit's cost may change, but not to 0.
    cdef readonly int cost
    # Number of the connection to the edge router to which the taker leads; 0 for no edge router.
    cdef public int edge
    cdef int credit_count
    cdef public bint presettles
    cdef bint is_closing_now
    cdef readonly object upstream
    # The largest message in bytes that the peer accepts; 0 for any size.
    cdef size_t max_message_bytes
    cdef readonly bint is_stream
    cdef int way
    # True for a link that this router opened: a circuit, a link to a broker, or a stream beside either of these.
    cdef readonly bint is_ours
    cdef bint is_broker
    cdef bint wants_outcomes  # pre-settled deliveries go to this taker unsettled
    # For an anycast circuit, the id of the egress router.
    cdef public object egress
    # The path of a circuit, or the tree of a multicast branch, that begins at this router; None for any other taker.
    cdef public object path
    # True for a branch of this router that gave a delivery back: the branch leads nowhere, and a new branch is needed.
    cdef readonly bint is_spent
    # True if the peer left in order (detach, end or close without an error): deliveries without an outcome count as not
    # tried.
    cdef bint has_left_in_order
    # For a branch of another router's tree: the routers to which it leads, and whether none of these has a taker any
    # more.
    cdef public object behind
    cdef public bint is_deserted
    # Called, if not None, before each delivery is started here; on a stream, before the end of each delivery.
    cdef object on_sending
    cdef bint is_member
    cdef bint is_stalled
    # For multicast: true if pre-settled deliveries are not copied to this taker, because it does not keep up.
    cdef bint is_skipped
    cdef readonly bint had_credit
    # For multicast: timers that run while unsettled, or pre-settled, deliveries wait for this taker (`watch`).
    cdef object stall_watch
    cdef object skip_watch
    cdef readonly unsigned long long copies_missed
    # The part of copies_missed that is recorded in the link log already.
    cdef unsigned long long copies_told
    # For link logs: the record level, and whether deliveries have moved since the taker was last recorded.
    cdef readonly unsigned char record_level
    cdef bint has_moved
    # Whether the receiver asks for a drain, and the number of drains that are not recorded yet.
    cdef bint is_asked
    cdef unsigned int drains
    cdef Carrier moving
    cdef Carrier newest
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_out
    cdef unsigned long long last_tag
    # Number of producers behind the deliveries that this router sends to the taker.
    cdef int weight
    cdef unsigned long long last_turn
    # For an anycast group with many takers (`ranking`): whether the group ranks this taker, its value when it was
    # ranked last, and its place in the ranking, -1 for none.
    cdef bint is_ranked
    cdef int value
    cdef Py_ssize_t place

    cdef int hold(self, Carrier carrier) except -1
    cdef int drop(self, Carrier carrier) except -1
    cdef list _oldest_first(self)
    cdef bint _let_go(self, Carrier carrier) except -1
    cdef int _note_written_in_session(self) except -1
    cdef int miss(self) except -1
    cdef int note_move(self) except -1
    cdef int note_drain(self, bint has_more) except -1
    cdef int end_move(self) except -1
    cdef int set_credit(self, int credit) except -1
    cdef int sync(self) except -1
    cdef pn_delivery_t *start(self) except NULL
    cdef bint can_take_now(self) noexcept
    cdef bint is_near_now(self) noexcept
    cdef int join(self) except -1
    cdef int leave(self) except -1


cdef bint has_had(list tried, Taker taker) except -1
cdef Carrier carrier_at(pn_delivery_t *delivery)
