"""Uses a delivery after its settlement: under AddressSanitizer, this script must fail before its last line."""

from mesh_tests.unit.wire.pipes import Pipe
from wire import delivery as deliveries

pipe = Pipe()
sender, receiver = pipe.link_pair()
receiver.grant(1)
pipe.run()
stale = sender.start(b"tag")
sender.send(b"message")
sender.finish()
pipe.run()
deliveries.settle(stale)
pipe.run()
# With proton's pool of objects, the memory would be kept for the next delivery, and the sanitizer would find no error.
deliveries.is_partial(stale)
