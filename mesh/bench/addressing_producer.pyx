"""A producer whose link has no address: each message names, in its properties, one of many addresses in turn."""

from libc.string cimport memcpy

from mesh.bench.frames cimport u8, u32
from mesh.bench.producer cimport BenchProducer

cdef enum:
    MOST_ADDRESS_BYTES = 200


cdef class AddressingProducer(BenchProducer):
    """A producer that sends its message k to the address with the number ``(first + k * step) % address_count``.

    Several producers with the same ``step``, as many as ``step``, so share the addresses evenly. Each number has
    the same count of digits, such as `bench.00042`, so that all messages have one template.
    """

    def __init__(self, channel, what, remote_window, *, str addresses, u32 address_count, u32 first=0, u32 step=1,
                 **options):
        """``addresses``: the text before the number, such as `bench.`."""
        if address_count == 0:
            raise ValueError("expected at least one address, got 0")
        self.addresses = addresses
        self.first, self.step, self.address_count = first, step, address_count
        self.digit_count = len(str(address_count - 1))
        if len(addresses.encode()) + self.digit_count > MOST_ADDRESS_BYTES:
            raise ValueError(f"expected an address of at most {MOST_ADDRESS_BYTES} bytes, got {addresses!r}")
        super().__init__(channel, what, remote_window, **options)
        if self.frame is NULL:
            raise ValueError(f"expected messages that fit into one frame, got bodies of {self.body_bytes} bytes")

    def _make_prefix(self, bint is_durable):
        """Put the properties, with the field `to`, before the body. [3.2.4]"""
        cdef bytes address = self.addresses.encode() + b"0" * self.digit_count
        cdef bytes field = b"\xa1" + len(address).to_bytes(1, "big") + address
        # The fields message-id and user-id are null.
        cdef bytes properties = b"\x00\x53\x73\xc0" + bytes([len(field) + 3, 3, 0x40, 0x40]) + field
        cdef bytes rest
        cdef size_t header_bytes = 7 if is_durable else 0
        BenchProducer._make_prefix(self, is_durable)
        rest = (<const u8 *>self.prefix)[header_bytes : self.prefix_bytes]
        memcpy(self.prefix + header_bytes, <const u8 *>properties, len(properties))
        memcpy(self.prefix + header_bytes + len(properties), <const u8 *>rest, len(rest))
        self.prefix_bytes += len(properties)
        self.digits_at = header_bytes + len(properties) - self.digit_count

    cdef void _stamp_frame(self, u8 *payload) noexcept:
        cdef u32 number = <u32>((self.first + <unsigned long long>self.sent * self.step) % self.address_count)
        cdef u8 *digit = payload + self.digits_at + self.digit_count
        BenchProducer._stamp_frame(self, payload)
        while digit > payload + self.digits_at:
            digit -= 1
            digit[0] = <u8>(c"0" + number % 10)
            number //= 10
