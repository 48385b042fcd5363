"""Was anything lost, when messages in doubt may come twice?"""

from collections.abc import Callable, Iterable

from mesh_tests.interop.clients.client import Exchange


def assert_nothing_lost(expected: Iterable[int], receiver: Exchange, receive_one: Callable[[], Exchange]) -> None:
    """``receiver`` wants as many messages as are expected: each extra one leaves another for ``receive_one``."""
    received = receiver.sequences()
    wanted = set(expected)
    while missing := wanted - set(received):
        assert len(received) < 2 * len(wanted), f"still missing: {sorted(missing)}"
        received += receive_one().sequences()
