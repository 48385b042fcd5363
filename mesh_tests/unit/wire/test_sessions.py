"""Sessions that begin and end in any order, over channels that are used again before the peer has caught up. [2.5]"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mesh_tests.seeds import seeds
from mesh_tests.unit.wire.pipes import Pipe
from mesh_tests.unit.wire.test_gate import BEGINNING, OPENING, Stranger, raw_frame
from wire.endpoint import Endpoint
from wire.events import LinkAttached, SessionBegun, Sink


class Side:
    """One of two endpoints. It begins sessions with a link in each, and ends some, answered or not."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.links: list[Any] = []
        self.heard_of = 0
        self._unsaid = bytearray()

    def begin(self) -> None:
        link = self.endpoint.begin().sender(f"{len(self.links)} of {self.endpoint.settings.container_id}")
        link.open()
        self.links.append(link)

    def end(self, random: Random) -> None:
        found = [link.session for link in self.links if not link.session.has_left]
        if found:
            random.choice(found).end()

    def hear(self, data: bytes, sink: Sink) -> None:
        if data:
            self.endpoint.receive(data)
        for event in self.endpoint.drain(sink):
            match event:
                case SessionBegun():
                    self.heard_of += 1
                case LinkAttached(link):
                    link.accept_as_proposed()

    def say(self, most_bytes: int) -> bytes:
        while chunk := self.endpoint.output():
            self._unsaid += chunk
        said, self._unsaid = self._unsaid[:most_bytes], self._unsaid[most_bytes:]
        return bytes(said)


@pytest.mark.parametrize("seed", seeds(100))
def test_sessions_may_end_and_begin_in_any_order(seed: int) -> None:
    """A channel is free for the next session once our end is written: the answer may come before the peer's end."""
    random = Random(seed)
    pipe = Pipe()
    sides = (Side(pipe.a), Side(pipe.b))
    for _ in range(200):
        near, far = random.sample(sides, 2)
        match random.randrange(4):
            case 0:
                near.begin()
            case 1:
                near.end(random)
            case _:
                far.hear(near.say(random.choice((1, 50, 100_000))), pipe.sinks[far.endpoint])
    is_quiet = False
    while not is_quiet:
        is_quiet = True
        for near, far in (sides, sides[::-1]):
            said = near.say(100_000)
            far.hear(said, pipe.sinks[far.endpoint])
            is_quiet = is_quiet and not said
    for near, far in (sides, sides[::-1]):
        assert not near.endpoint.is_finished
        assert far.heard_of == len(near.links)
        assert all(link.is_open for link in near.links if not link.session.has_left)


def attached(pipe: Pipe, session: Any) -> Any:
    """A link in ``session``, which b was asked to accept."""
    link = session.sender("second")
    link.open()
    pipe.run()
    (asked,) = pipe.take(pipe.b, LinkAttached)
    asked.link.accept_as_proposed()
    pipe.run()
    return link


def test_an_answer_may_come_before_the_end_of_the_session_that_had_its_channel() -> None:
    """The engine writes begins before ends, so one that hears of both at once answers in that order."""
    pipe = Pipe()
    first = pipe.a.begin()
    pipe.run()
    first.end()
    pipe.b.receive(pipe.a.output())
    assert attached(pipe, pipe.a.begin()).is_open
    assert not pipe.a.is_finished


def test_a_session_that_is_ended_before_its_answer_ends_when_that_comes() -> None:
    pipe = Pipe()
    first = pipe.a.begin()
    first.end()
    assert attached(pipe, pipe.a.begin()).is_open
    assert (pipe.a.session_count, pipe.b.session_count) == (1, 1)


def test_a_begin_that_answers_what_was_over_at_once_closes_the_connection() -> None:
    """The engine answers a session that began and ended in the same bytes as if it began one itself."""
    ending = raw_frame(0x17, [], channel=3)
    beginning = raw_frame(0x11, [b"\x40", b"\x43", b"\x52\x05", b"\x52\x05"], channel=3)
    stranger = Stranger(OPENING, beginning + ending)
    stranger.answers()
    stranger.say(beginning)
    stranger.answers()
    stranger.say(raw_frame(0x11, [b"\x60\x00\x00", b"\x43", b"\x52\x05", b"\x52\x05"], channel=4))
    assert stranger.answers()[-1]["error"]["condition"] == "amqp:invalid-field"


@pytest.mark.parametrize("answered", [0, 1, 65_535])
def test_a_begin_that_answers_no_begin_of_ours_closes_the_connection(answered: int) -> None:
    """One that the peer began is answered by us: the engine would have two channels for it, and free it once."""
    stranger = Stranger(OPENING, BEGINNING)
    stranger.say(raw_frame(0x11, [b"\x60" + answered.to_bytes(2), b"\x43", b"\x43", b"\x43"], channel=1))
    condition, description = stranger.error()
    assert condition == "amqp:invalid-field"
    assert f"begin.remote-channel: {answered}, but no session on that channel waits for an answer" in description
