"""Does the sanitizer see a delivery that is used after it was settled? Run under it, this must not come to its end."""

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
# With proton's pool this would be memory that waits for the next delivery, and nothing would be seen.
deliveries.is_partial(stale)
