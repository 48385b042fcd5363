ADDRESS_ANNOTATION: str

def addressed_start(start: bytes, address: bytes, fills_to: bool) -> bytes | None:
    """Return the first bytes of a message with x-opt-to; None for a message that has to stay as it is.

    With ``fills_to``, an empty or missing `to` is filled in, too.
    """

def with_to(message: bytes, address: bytes) -> bytes: ...
def with_delivery_address(message: bytes, address: bytes) -> bytes: ...
