from mesh.bench.producer import BenchProducer

class AddressingProducer(BenchProducer):
    def __init__(
        self,
        channel: int,
        what: str,
        remote_window: int,
        *,
        addresses: str,
        address_count: int,
        first: int = 0,
        step: int = 1,
        run: int,
        count: int,
        body_bytes: int,
        frame_bytes: int,
        is_presettled: bool = False,
        is_durable: bool = False,
    ) -> None: ...
