"""Use a delivery after its settlement. Under the sanitizer, this script must fail before its end."""

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
# With proton's pool, this memory would wait for the next delivery, and the sanitizer would see no error.
deliveries.is_partial(stale)
