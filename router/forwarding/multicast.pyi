from router.forwarding.address import AddressGroup

class Multicast(AddressGroup):
    is_settled_apart: bool
