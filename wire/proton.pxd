# Proton's engine as the compiled parts call it: prototypes of our own, since proton's headers are not installed.
# `proton.pyx` fills in functions of the very library that python-qpid-proton carries; there is never a second copy.

cdef extern from *:
    """
    typedef struct pn_connection_t pn_connection_t;
    typedef struct pn_transport_t pn_transport_t;
    typedef struct pn_collector_t pn_collector_t;
    typedef struct pn_session_t pn_session_t;
    typedef struct pn_link_t pn_link_t;
    typedef struct pn_delivery_t pn_delivery_t;
    typedef struct pn_disposition_t pn_disposition_t;
    typedef struct pn_condition_t pn_condition_t;
    typedef struct pn_data_t pn_data_t;
    typedef struct pn_terminus_t pn_terminus_t;
    typedef struct pn_event_t pn_event_t;
    typedef struct { size_t size; const char *start; } pn_bytes_t;
    """
    ctypedef struct pn_connection_t:
        pass
    ctypedef struct pn_transport_t:
        pass
    ctypedef struct pn_collector_t:
        pass
    ctypedef struct pn_session_t:
        pass
    ctypedef struct pn_link_t:
        pass
    ctypedef struct pn_delivery_t:
        pass
    ctypedef struct pn_disposition_t:
        pass
    ctypedef struct pn_condition_t:
        pass
    ctypedef struct pn_data_t:
        pass
    ctypedef struct pn_terminus_t:
        pass
    ctypedef struct pn_event_t:
        pass
    ctypedef struct pn_bytes_t:
        size_t size
        const char *start

ctypedef unsigned char cbool

ctypedef struct Proton:
    void *(*incref)(void *) noexcept
    int (*decref)(void *) noexcept
    # Bytes
    ssize_t (*transport_push)(pn_transport_t *, const char *, size_t) noexcept
    ssize_t (*transport_capacity)(pn_transport_t *) noexcept
    ssize_t (*transport_pending)(pn_transport_t *) noexcept
    const char *(*transport_head)(pn_transport_t *) noexcept
    void (*transport_pop)(pn_transport_t *, size_t) noexcept
    cbool (*transport_closed)(pn_transport_t *) noexcept
    unsigned int (*transport_get_max_frame)(pn_transport_t *) noexcept
    unsigned int (*transport_get_remote_max_frame)(pn_transport_t *) noexcept
    int (*connection_state)(pn_connection_t *) noexcept
    pn_transport_t *(*connection_transport)(pn_connection_t *) noexcept
    pn_connection_t *(*session_connection)(pn_session_t *) noexcept
    # Events
    pn_event_t *(*collector_peek)(pn_collector_t *) noexcept
    cbool (*collector_pop)(pn_collector_t *) noexcept
    int (*event_type)(pn_event_t *) noexcept
    pn_delivery_t *(*event_delivery)(pn_event_t *) noexcept
    pn_link_t *(*event_link)(pn_event_t *) noexcept
    # Sessions and links
    unsigned int (*session_remote_incoming_window)(pn_session_t *) noexcept
    size_t (*session_incoming_bytes)(pn_session_t *) noexcept
    size_t (*session_outgoing_bytes)(pn_session_t *) noexcept
    void *(*link_get_context)(pn_link_t *) noexcept
    void (*link_set_context)(pn_link_t *, void *) noexcept
    cbool (*link_is_sender)(pn_link_t *) noexcept
    int (*link_state)(pn_link_t *) noexcept
    int (*link_rcv_settle_mode)(pn_link_t *) noexcept
    int (*link_remote_rcv_settle_mode)(pn_link_t *) noexcept
    int (*link_credit)(pn_link_t *) noexcept
    int (*link_queued)(pn_link_t *) noexcept
    int (*link_remote_credit)(pn_link_t *) noexcept
    void (*link_flow)(pn_link_t *, int) noexcept
    void (*link_drain)(pn_link_t *, int) noexcept
    void (*link_set_drain)(pn_link_t *, cbool) noexcept
    cbool (*link_get_drain)(pn_link_t *) noexcept
    cbool (*link_draining)(pn_link_t *) noexcept
    int (*link_drained)(pn_link_t *) noexcept
    pn_delivery_t *(*link_current)(pn_link_t *) noexcept
    ssize_t (*link_recv)(pn_link_t *, char *, size_t) noexcept
    ssize_t (*link_send)(pn_link_t *, const char *, size_t) noexcept
    cbool (*link_advance)(pn_link_t *) noexcept
    # Deliveries
    pn_delivery_t *(*delivery)(pn_link_t *, pn_bytes_t) noexcept
    pn_bytes_t (*delivery_tag)(pn_delivery_t *) noexcept
    void *(*delivery_get_context)(pn_delivery_t *) noexcept
    void (*delivery_set_context)(pn_delivery_t *, void *) noexcept
    pn_link_t *(*delivery_link)(pn_delivery_t *) noexcept
    pn_delivery_t *(*unsettled_next)(pn_delivery_t *) noexcept
    size_t (*delivery_pending)(pn_delivery_t *) noexcept
    cbool (*delivery_partial)(pn_delivery_t *) noexcept
    cbool (*delivery_aborted)(pn_delivery_t *) noexcept
    cbool (*delivery_settled)(pn_delivery_t *) noexcept
    cbool (*delivery_updated)(pn_delivery_t *) noexcept
    cbool (*delivery_buffered)(pn_delivery_t *) noexcept
    void (*delivery_update)(pn_delivery_t *, size_t) noexcept
    void (*delivery_settle)(pn_delivery_t *) noexcept
    void (*delivery_abort)(pn_delivery_t *) noexcept
    void (*delivery_clear)(pn_delivery_t *) noexcept
    size_t (*delivery_local_state)(pn_delivery_t *) noexcept
    size_t (*delivery_remote_state)(pn_delivery_t *) noexcept
    pn_disposition_t *(*delivery_local)(pn_delivery_t *) noexcept
    pn_disposition_t *(*delivery_remote)(pn_delivery_t *) noexcept
    # Dispositions
    pn_condition_t *(*disposition_condition)(pn_disposition_t *) noexcept
    pn_data_t *(*disposition_data)(pn_disposition_t *) noexcept
    pn_data_t *(*disposition_annotations)(pn_disposition_t *) noexcept
    cbool (*disposition_is_failed)(pn_disposition_t *) noexcept
    void (*disposition_set_failed)(pn_disposition_t *, cbool) noexcept
    cbool (*disposition_is_undeliverable)(pn_disposition_t *) noexcept
    void (*disposition_set_undeliverable)(pn_disposition_t *, cbool) noexcept
    unsigned int (*disposition_get_section_number)(pn_disposition_t *) noexcept
    void (*disposition_set_section_number)(pn_disposition_t *, unsigned int) noexcept
    unsigned long long (*disposition_get_section_offset)(pn_disposition_t *) noexcept
    void (*disposition_set_section_offset)(pn_disposition_t *, unsigned long long) noexcept
    # Conditions
    int (*condition_copy)(pn_condition_t *, pn_condition_t *) noexcept
    const char *(*condition_get_name)(pn_condition_t *) noexcept
    int (*condition_set_name)(pn_condition_t *, const char *) noexcept
    const char *(*condition_get_description)(pn_condition_t *) noexcept
    int (*condition_set_description)(pn_condition_t *, const char *) noexcept
    pn_data_t *(*condition_info)(pn_condition_t *) noexcept
    # Termini
    pn_session_t *(*link_session)(pn_link_t *) noexcept
    const char *(*link_name)(pn_link_t *) noexcept
    pn_terminus_t *(*link_source)(pn_link_t *) noexcept
    pn_terminus_t *(*link_target)(pn_link_t *) noexcept
    pn_data_t *(*link_properties)(pn_link_t *) noexcept
    int (*terminus_get_type)(pn_terminus_t *) noexcept
    const char *(*terminus_get_address)(pn_terminus_t *) noexcept
    pn_data_t *(*terminus_properties)(pn_terminus_t *) noexcept
    pn_data_t *(*terminus_capabilities)(pn_terminus_t *) noexcept
    pn_data_t *(*terminus_outcomes)(pn_terminus_t *) noexcept
    pn_data_t *(*terminus_filter)(pn_terminus_t *) noexcept
    # Values
    int (*data_copy)(pn_data_t *, pn_data_t *) noexcept
    void (*data_clear)(pn_data_t *) noexcept
    size_t (*data_size)(pn_data_t *) noexcept
    ssize_t (*data_encoded_size)(pn_data_t *) noexcept

cdef Proton pn

cdef enum:
    # [pn_state_t]
    PN_LOCAL_ACTIVE = 2
    PN_REMOTE_UNINIT = 8
    PN_REMOTE_ACTIVE = 16

cdef enum:
    # [pn_terminus_type_t] a null terminus
    PN_UNSPECIFIED = 0

cdef enum:
    # [2.8.3] rcv-settle-mode
    RECEIVE_SECOND = 1

cdef enum:
    PN_DELIVERY = 28
    PN_LINK_FLOW = 26

cdef enum:
    # Descriptor codes of the delivery states. [3.4]
    RECEIVED_STATE = 0x23
    ACCEPTED_STATE = 0x24
    REJECTED_STATE = 0x25
    RELEASED_STATE = 0x26
    MODIFIED_STATE = 0x27
    # [4.5.8]
    TRANSACTIONAL_STATE = 0x34
