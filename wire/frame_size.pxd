from wire.proton cimport pn_condition_t, pn_delivery_t, pn_disposition_t


cdef int fit_condition(pn_condition_t *condition, pn_delivery_t *delivery) except -1
cdef int fit_annotations(pn_disposition_t *disposition, pn_delivery_t *delivery) except -1
cdef int fit_data(pn_disposition_t *disposition, pn_delivery_t *delivery) except -1
