"""Messages of any size go out in pieces and are put where they are wanted, without being held."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh.client.bodies import BodySink, FiledBody, HeldBody
from mesh.client.errors import BodyNotKept, MeshError
from mesh.client.links import Received, Receiver, Sender
from mesh.messages.large_body import Filler
from mesh.messages.sender import encode_body
from mesh_tests.unit.wire.pipes import Pipe
from wire.delivery import ACCEPTED, Outcome, OutcomeCode
from wire.link import OutgoingLink
from wire.message import Message, decode, encode

LARGE = os.urandom(300_000)


class OwnersSink:
    """As a client: what a link hears is for its owner."""

    def on_delivery(self, link: Any, delivery: Any) -> None:
        link.owner.on_delivery(delivery)

    def on_disposition(self, link: Any, delivery: Any) -> None:
        if isinstance(link, OutgoingLink):
            link.owner.on_disposition(delivery)

    def on_flow(self, link: Any) -> None: ...


class Pumped:
    """Waiting is moving bytes between the two ends."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def wait_for(self, holds: Callable[[], bool]) -> None:
        if not holds():
            self._pipe.run()
        assert holds(), "nothing more will come"

    def wake(self) -> None: ...


class Ends:
    """A sender of ``pipe.a`` and a receiver of ``pipe.b`` on one link, with credit."""

    def __init__(self, keep_body: Callable[[], BodySink] = HeldBody) -> None:
        self.pipe = Pipe()
        outgoing, incoming = self.pipe.link_pair()
        self.pipe.sinks = {self.pipe.a: OwnersSink(), self.pipe.b: OwnersSink()}  # type: ignore[dict-item]
        waits = Pumped(self.pipe)
        self.sender = outgoing.owner = Sender(waits, outgoing, "a", is_presettled=False)
        self.receiver = incoming.owner = Receiver(waits, incoming, "a", 10, keep_body)
        self.receiver.top_up()
        self.pipe.run()

    def send(self, data: Any, on_moved: Callable[[], None] = lambda: None) -> asyncio.Future[Outcome | None]:
        return asyncio.run(self.sender.send(data, on_moved))

    def receive(self) -> Received:
        return asyncio.run(self.receiver.receive())


def pieces_of(data: bytes, *, breaks_at: int | None = None) -> Iterator[bytes]:
    for start in range(0, len(data), 10_000):
        if breaks_at is not None and start >= breaks_at:
            raise MeshError("broken")
        yield data[start : start + 10_000]


def test_a_message_in_pieces_arrives_whole_and_its_outcome_comes_back() -> None:
    ends = Ends()
    moves: list[None] = []
    outcome = ends.send(pieces_of(encode(Message(LARGE))), lambda: moves.append(None))
    received = ends.receive()
    assert received.body == LARGE
    assert decode(received.data) == Message()
    assert len(moves) > len(LARGE) // 10_000
    ends.receiver.settle(received, ACCEPTED)
    ends.pipe.run()
    result = outcome.result()
    assert result is not None
    assert result.kind is OutcomeCode.ACCEPTED


def test_a_large_body_goes_to_its_file_as_it_comes(tmp_path: Path) -> None:
    ends = Ends(lambda: FiledBody(tmp_path / ".000001.part"))
    ends.send(pieces_of(encode(Message(LARGE, subject="s"))))
    received = ends.receive()
    assert received.body == tmp_path / ".000001.part"
    assert (tmp_path / ".000001.part").read_bytes() == LARGE
    assert decode(received.data).subject == "s"


def test_a_value_that_comes_in_pieces_is_no_body_to_be_filed(tmp_path: Path) -> None:
    ends = Ends(lambda: FiledBody(tmp_path / ".000001.part"))
    ends.send(encode(Message("text" * 100_000)))
    received = ends.receive()
    assert received.body is None
    assert decode(received.data).body == "text" * 100_000


def test_a_message_that_breaks_off_is_aborted_and_leaves_no_file(tmp_path: Path) -> None:
    ends = Ends(lambda: FiledBody(tmp_path / ".000001.part"))
    with pytest.raises(MeshError, match="broken"):
        ends.send(pieces_of(encode(Message(LARGE)), breaks_at=200_000))
    assert ends.sender.unsettled == 0
    ends.pipe.run()
    assert list(tmp_path.iterdir()) == []
    ends.send(encode(Message("next")))
    assert decode(ends.receive().data).body == "next"


def test_what_arrived_and_was_not_taken_leaves_no_file(tmp_path: Path) -> None:
    ends = Ends(lambda: FiledBody(tmp_path / ".000001.part"))
    ends.send(pieces_of(encode(Message(LARGE))))
    ends.pipe.run()
    assert len(list(tmp_path.iterdir())) == 1
    ends.receiver.close()
    assert list(tmp_path.iterdir()) == []


def test_a_body_too_large_to_be_printed_is_refused_and_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesh.client.bodies.MAX_HELD_BYTES", 1 << 17)
    ends = Ends()
    outcome = ends.send(pieces_of(encode(Message(LARGE))))
    with pytest.raises(BodyNotKept, match="is too large to print") as told:
        ends.receive()
    assert "-o DIRECTORY" in (told.value.fix or "")
    assert not outcome.done()


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ends = Ends(lambda: FiledBody(tmp_path / "file" / ".000001.part"))
    ends.send(pieces_of(encode(Message(LARGE))))
    with pytest.raises(BodyNotKept, match="cannot write"):
        ends.receive()


def test_a_large_body_is_encoded_as_its_head_and_its_pieces() -> None:
    encoded = encode_body(Message(subject="s"), Filler(100_000))
    data = b"".join(encoded.pieces())
    assert len(data) == encoded.size_bytes
    assert decode(data) == Message(b"x" * 100_000, subject="s")


class Queued:
    """Waiting lasts until `run` has moved bytes between the two ends, as often as the test says."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._waiting: list[tuple[asyncio.Future[None], Callable[[], bool]]] = []

    async def wait_for(self, holds: Callable[[], bool]) -> None:
        if not holds():
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((waiting, holds))
            await waiting

    def wake(self) -> None: ...

    async def run(self) -> None:
        self._pipe.run()
        due = [each for each in self._waiting if each[1]()]
        self._waiting = [each for each in self._waiting if each not in due]
        for waiting, _ in due:
            waiting.set_result(None)
        for _ in range(3):
            await asyncio.sleep(0)


def test_messages_of_several_callers_go_out_one_after_the_other_whatever_their_sizes() -> None:
    async def run() -> None:
        ends = Ends()
        waits = ends.sender._waits = Queued(ends.pipe)  # type: ignore[assignment]
        bodies = [LARGE, b"small", LARGE[::-1], b"another"]
        sent = [asyncio.create_task(ends.sender.send(encode(Message(body)))) for body in bodies]
        arrived = []
        for _ in range(200):
            await waits.run()
            while ends.receiver._arrived:
                received = await ends.receiver.receive()
                arrived.append(received.body if received.body is not None else decode(received.data).body)
            if all(each.done() for each in sent) and len(arrived) == len(bodies):
                break
        assert sorted(arrived) == sorted(bodies)

    asyncio.run(run())
