"""`bench cycles`: its compiled client against an endpoint, and against bytes that end a cycle early."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from mesh.bench.cycle_loop import run_cycles
from mesh.bench.cycles import BODY_BYTES, CyclesBenchRun, frames_of, name_of, sasl_init_of, sentences
from mesh.bench.dial import BenchServer, listen
from mesh.bench.faults import BenchRefused, Malformed, PeerGone
from mesh.bench.performatives import CLOSE_FRAME
from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh_tests.bench.messages import RUN, body_of, stamp_of
from mesh_tests.bench.wire_peer import HEADER, REFUSED, SASL_HEADER, WirePeer
from wire.outcome import RELEASED
from wire.sasl.frames import SaslInit, SaslMechanisms, SaslOutcome, encode_frame

STALL_S = 5.0
SOON_S = 0.2


def cycles_at(
    place: BenchServer, count: int = 1, *, address: str = "a", has_sasl: bool = False, stall_s: float = STALL_S
) -> int:
    frames = [frames_of(place, address, RUN, has_sasl=has_sasl)]
    (only,), began_at, ended_at = run_cycles(place.host, place.port, frames, count, stall_s)
    assert (only.done, began_at < ended_at) == (count, True)
    return only.accepted


def test_each_cycle_sends_one_message_with_its_number_on_a_connection_of_its_own() -> None:
    with WirePeer() as peer:
        assert cycles_at(peer.place, 4) == 4
    assert [stamp_of(message) for message, _ in peer.messages] == [(RUN, number, 0) for number in range(4)]
    assert {len(body_of(message)) for message, _ in peer.messages} == {BODY_BYTES}


def test_an_outcome_that_is_not_accepted_ends_the_cycle_and_is_counted() -> None:
    with WirePeer(outcome_of=lambda _: RELEASED) as peer:
        assert cycles_at(peer.place, 2) == 0


def test_a_refused_link_is_said() -> None:
    with WirePeer() as peer, pytest.raises(BenchRefused, match="cycle: no such address"):
        cycles_at(peer.place, address=REFUSED)


def test_a_message_without_an_outcome_is_said_after_a_while() -> None:
    with (
        WirePeer(outcome_of=lambda _: None) as peer,
        pytest.raises(TimedOut, match=r"0 of 1 cycles were done when nothing had moved for 0\.2 s"),
    ):
        cycles_at(peer.place, stall_s=SOON_S)


def test_nobody_listening_is_said() -> None:
    with listen() as listening:
        place = BenchServer("127.0.0.1", listening.getsockname()[1])
    with pytest.raises(Unreachable, match="cannot connect: connection refused"):
        cycles_at(place)


# SASL
class Answers:
    """A server that answers each read with the next of its answers, and then closes the connection."""

    def __init__(self, *answers: bytes) -> None:
        self.heard: list[bytes] = []
        self._answers = answers
        self._listening = listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def place(self) -> BenchServer:
        return BenchServer("127.0.0.1", self._listening.getsockname()[1])

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        connection.settimeout(STALL_S)
        with connection, suppress(OSError):
            for answer in self._answers:
                self.heard.append(connection.recv(65536))
                connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(65536)

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._listening.close()


MECHANISMS = SASL_HEADER + encode_frame(SaslMechanisms(("ANONYMOUS",)))


def test_the_login_is_one_step_and_amqp_begins_after_its_outcome() -> None:
    accepted = encode_frame(SaslOutcome(0))
    with (
        Answers(MECHANISMS, accepted, HEADER + CLOSE_FRAME) as server,
        pytest.raises(PeerGone, match="closed the connection"),
    ):
        cycles_at(server.place, has_sasl=True)
    assert server.heard[0] == SASL_HEADER
    assert server.heard[1] == encode_frame(SaslInit("ANONYMOUS", None, "127.0.0.1"))
    assert server.heard[2].startswith(HEADER)


@pytest.mark.parametrize(
    ("answers", "error", "words"),
    [
        ((MECHANISMS, encode_frame(SaslOutcome(1))), Unreachable, "the peer refused the login"),
        ((HEADER,), PeerGone, "header of protocol 0"),
        ((MECHANISMS, MECHANISMS[8:]), PeerGone, "unexpected SASL frame 0x40"),
        ((MECHANISMS,), PeerGone, "closed it in the middle of a cycle"),
        ((b"\x00\x00\x00\x04\x02\x00\x00\x00",), Malformed, "expected a frame of 8"),
    ],
)
def test_a_server_that_does_not_speak_sasl_as_it_should_is_said(
    answers: tuple[bytes, ...], error: type[MeshError], words: str
) -> None:
    with Answers(*answers) as server, pytest.raises(error, match=words):
        cycles_at(server.place, has_sasl=True)


def test_a_user_logs_in_with_plain_and_nobody_anonymously() -> None:
    assert sasl_init_of(BenchServer("h", 1, "u", "p")) == SaslInit("PLAIN", b"\0u\0p", "h")
    assert sasl_init_of(BenchServer("h", 1)) == SaslInit("ANONYMOUS", None, "h")


# Rows
def test_rows_name_how_many_cycles_are_under_way() -> None:
    names = [name_of("r", at_once).rpartition(", ")[2] for at_once in (1, 8)]
    assert names == ["one after the other", "8 at once"]


def test_messages_that_were_lost_or_not_accepted_are_wrong() -> None:
    runs = [CyclesBenchRun({"lost": 2}, {}), CyclesBenchRun({"lost": 0}, {"not accepted to the sender": 1})]
    assert list(sentences("w", runs)) == ["w: 2 messages did not arrive", "w: 1 messages not accepted to the sender"]
