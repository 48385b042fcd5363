"""Functions of proton's engine for the compiled modules, taken from the library that is already loaded.

The functions are found by `dlsym` in python-qpid-proton's own extension: so there is no dependency at link time, and
never a second copy of proton in the process.
"""

import cproton  # no-cython-lint: it installs the callbacks that cproton_ffi needs, and must come first
import cproton_ffi


cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *, int)
    void *dlsym(void *, const char *)
    const int RTLD_NOW
    const int RTLD_NOLOAD


cdef void *_library = dlopen(cproton_ffi.__file__.encode(), RTLD_NOW | RTLD_NOLOAD)
if _library is NULL:
    raise ImportError(f"proton's library {cproton_ffi.__file__} is not loaded")


cdef void *_need(name) except NULL:
    """Return the address of proton's function ``name``. Raises ImportError if the loaded library does not export it."""
    cdef void *found = dlsym(_library, name)
    if found is NULL:
        raise ImportError(f"{cproton_ffi.__file__} has no function {name.decode()}; python-qpid-proton 0.40 has it")
    return found


def address_of_function(name):
    """Return the address of proton's function ``name`` (bytes) as an int, for calls through cffi.

    Raises ImportError if the loaded library does not export the function.
    """
    return <size_t>_need(name)


(<void **>&pn.incref)[0] = _need(b"pn_incref")
(<void **>&pn.decref)[0] = _need(b"pn_decref")
(<void **>&pn.transport_push)[0] = _need(b"pn_transport_push")
(<void **>&pn.transport_capacity)[0] = _need(b"pn_transport_capacity")
(<void **>&pn.transport_pending)[0] = _need(b"pn_transport_pending")
(<void **>&pn.transport_head)[0] = _need(b"pn_transport_head")
(<void **>&pn.transport_pop)[0] = _need(b"pn_transport_pop")
(<void **>&pn.transport_closed)[0] = _need(b"pn_transport_closed")
(<void **>&pn.transport_get_max_frame)[0] = _need(b"pn_transport_get_max_frame")
(<void **>&pn.transport_get_remote_max_frame)[0] = _need(b"pn_transport_get_remote_max_frame")
(<void **>&pn.connection_state)[0] = _need(b"pn_connection_state")
(<void **>&pn.connection_transport)[0] = _need(b"pn_connection_transport")
(<void **>&pn.session_connection)[0] = _need(b"pn_session_connection")
(<void **>&pn.collector_peek)[0] = _need(b"pn_collector_peek")
(<void **>&pn.collector_pop)[0] = _need(b"pn_collector_pop")
(<void **>&pn.event_type)[0] = _need(b"pn_event_type")
(<void **>&pn.event_delivery)[0] = _need(b"pn_event_delivery")
(<void **>&pn.event_link)[0] = _need(b"pn_event_link")
(<void **>&pn.session_remote_incoming_window)[0] = _need(b"pn_session_remote_incoming_window")
(<void **>&pn.session_incoming_bytes)[0] = _need(b"pn_session_incoming_bytes")
(<void **>&pn.session_outgoing_bytes)[0] = _need(b"pn_session_outgoing_bytes")
(<void **>&pn.link_get_context)[0] = _need(b"pn_link_get_context")
(<void **>&pn.link_set_context)[0] = _need(b"pn_link_set_context")
(<void **>&pn.link_is_sender)[0] = _need(b"pn_link_is_sender")
(<void **>&pn.link_state)[0] = _need(b"pn_link_state")
(<void **>&pn.link_rcv_settle_mode)[0] = _need(b"pn_link_rcv_settle_mode")
(<void **>&pn.link_remote_rcv_settle_mode)[0] = _need(b"pn_link_remote_rcv_settle_mode")
(<void **>&pn.link_credit)[0] = _need(b"pn_link_credit")
(<void **>&pn.link_queued)[0] = _need(b"pn_link_queued")
(<void **>&pn.link_remote_credit)[0] = _need(b"pn_link_remote_credit")
(<void **>&pn.link_flow)[0] = _need(b"pn_link_flow")
(<void **>&pn.link_drain)[0] = _need(b"pn_link_drain")
(<void **>&pn.link_set_drain)[0] = _need(b"pn_link_set_drain")
(<void **>&pn.link_get_drain)[0] = _need(b"pn_link_get_drain")
(<void **>&pn.link_draining)[0] = _need(b"pn_link_draining")
(<void **>&pn.link_drained)[0] = _need(b"pn_link_drained")
(<void **>&pn.link_current)[0] = _need(b"pn_link_current")
(<void **>&pn.link_recv)[0] = _need(b"pn_link_recv")
(<void **>&pn.link_send)[0] = _need(b"pn_link_send")
(<void **>&pn.link_advance)[0] = _need(b"pn_link_advance")
(<void **>&pn.delivery)[0] = _need(b"pn_delivery")
(<void **>&pn.delivery_tag)[0] = _need(b"pn_delivery_tag")
(<void **>&pn.delivery_get_context)[0] = _need(b"pn_delivery_get_context")
(<void **>&pn.delivery_set_context)[0] = _need(b"pn_delivery_set_context")
(<void **>&pn.delivery_link)[0] = _need(b"pn_delivery_link")
(<void **>&pn.unsettled_next)[0] = _need(b"pn_unsettled_next")
(<void **>&pn.delivery_pending)[0] = _need(b"pn_delivery_pending")
(<void **>&pn.delivery_partial)[0] = _need(b"pn_delivery_partial")
(<void **>&pn.delivery_aborted)[0] = _need(b"pn_delivery_aborted")
(<void **>&pn.delivery_settled)[0] = _need(b"pn_delivery_settled")
(<void **>&pn.delivery_updated)[0] = _need(b"pn_delivery_updated")
(<void **>&pn.delivery_buffered)[0] = _need(b"pn_delivery_buffered")
(<void **>&pn.delivery_update)[0] = _need(b"pn_delivery_update")
(<void **>&pn.delivery_settle)[0] = _need(b"pn_delivery_settle")
(<void **>&pn.delivery_abort)[0] = _need(b"pn_delivery_abort")
(<void **>&pn.delivery_clear)[0] = _need(b"pn_delivery_clear")
(<void **>&pn.delivery_local_state)[0] = _need(b"pn_delivery_local_state")
(<void **>&pn.delivery_remote_state)[0] = _need(b"pn_delivery_remote_state")
(<void **>&pn.delivery_local)[0] = _need(b"pn_delivery_local")
(<void **>&pn.delivery_remote)[0] = _need(b"pn_delivery_remote")
(<void **>&pn.disposition_condition)[0] = _need(b"pn_disposition_condition")
(<void **>&pn.disposition_data)[0] = _need(b"pn_disposition_data")
(<void **>&pn.disposition_annotations)[0] = _need(b"pn_disposition_annotations")
(<void **>&pn.disposition_is_failed)[0] = _need(b"pn_disposition_is_failed")
(<void **>&pn.disposition_set_failed)[0] = _need(b"pn_disposition_set_failed")
(<void **>&pn.disposition_is_undeliverable)[0] = _need(b"pn_disposition_is_undeliverable")
(<void **>&pn.disposition_set_undeliverable)[0] = _need(b"pn_disposition_set_undeliverable")
(<void **>&pn.disposition_get_section_number)[0] = _need(b"pn_disposition_get_section_number")
(<void **>&pn.disposition_set_section_number)[0] = _need(b"pn_disposition_set_section_number")
(<void **>&pn.disposition_get_section_offset)[0] = _need(b"pn_disposition_get_section_offset")
(<void **>&pn.disposition_set_section_offset)[0] = _need(b"pn_disposition_set_section_offset")
(<void **>&pn.condition_copy)[0] = _need(b"pn_condition_copy")
(<void **>&pn.condition_get_name)[0] = _need(b"pn_condition_get_name")
(<void **>&pn.condition_set_name)[0] = _need(b"pn_condition_set_name")
(<void **>&pn.condition_get_description)[0] = _need(b"pn_condition_get_description")
(<void **>&pn.condition_set_description)[0] = _need(b"pn_condition_set_description")
(<void **>&pn.condition_info)[0] = _need(b"pn_condition_info")
(<void **>&pn.link_session)[0] = _need(b"pn_link_session")
(<void **>&pn.link_name)[0] = _need(b"pn_link_name")
(<void **>&pn.link_source)[0] = _need(b"pn_link_source")
(<void **>&pn.link_target)[0] = _need(b"pn_link_target")
(<void **>&pn.link_properties)[0] = _need(b"pn_link_properties")
(<void **>&pn.terminus_get_type)[0] = _need(b"pn_terminus_get_type")
(<void **>&pn.terminus_get_address)[0] = _need(b"pn_terminus_get_address")
(<void **>&pn.terminus_properties)[0] = _need(b"pn_terminus_properties")
(<void **>&pn.terminus_capabilities)[0] = _need(b"pn_terminus_capabilities")
(<void **>&pn.terminus_outcomes)[0] = _need(b"pn_terminus_outcomes")
(<void **>&pn.terminus_filter)[0] = _need(b"pn_terminus_filter")
(<void **>&pn.data_copy)[0] = _need(b"pn_data_copy")
(<void **>&pn.data_clear)[0] = _need(b"pn_data_clear")
(<void **>&pn.data_size)[0] = _need(b"pn_data_size")
(<void **>&pn.data_encoded_size)[0] = _need(b"pn_data_encoded_size")
