"""Traces of connections: what is in their lines, what never is, and what an endpoint without a trace pays."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from wire import delivery as deliveries
from wire.codec import table
from wire.codec.frames import AmqpFrame, CompositeValue, encode_frame
from wire.codec.values import Symbol
from wire.endpoint import Endpoint, EndpointSettings
from wire.frame_trace import MOST_PER_S, FrameTrace, _Frames, line_of, plain
from wire.terminus import source, target

SECRET = b"S3cr3t-of-a-body"
MESSAGE = b"\x00\x53\x75\xa0" + bytes([len(SECRET)]) + SECRET
TRACED = ("receive", "output", "send_to", "free")


class Conversation:
    """A client and a node; bytes arrive in random pieces."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.client = Endpoint(EndpointSettings("client", max_frame_bytes=1024))
        self.node = Endpoint(EndpointSettings("node"))
        self.lines: list[dict[str, Any]] = []
        self.over: list[str] = []
        self.now = 0.0
        self.trace = FrameTrace(self.node, self.lines.append, lambda: self.now, self.over.append)

    def on_delivery(self, link: Any, delivery: Any) -> None:
        if not deliveries.is_partial(delivery):
            link.recv(deliveries.pending(delivery))
            link.advance()
            deliveries.set_outcome(delivery, deliveries.ACCEPTED)
            deliveries.settle(delivery)

    def on_disposition(self, link: Any, delivery: Any) -> None:
        if deliveries.is_settled(delivery):
            deliveries.settle(delivery)

    def on_flow(self, link: Any) -> None: ...

    def settle(self) -> None:
        while self._carry(self.client, self.node) | self._carry(self.node, self.client):
            for event in [*self.node.drain(self), *self.client.drain(self)]:
                if (link := getattr(event, "link", None)) is not None and not link.has_left and link.is_peer_attached:
                    link.accept_as_proposed() if link.endpoint is self.node else None
                    link.grant(10) if link.endpoint is self.node and link.is_incoming else None

    def _carry(self, one: Endpoint, other: Endpoint) -> bool:
        is_any = False
        while data := one.output():
            is_any = True
            while data:
                size = self.random.randint(1, len(data))
                other.receive(data[:size])
                data = data[size:]
        return is_any

    def open(self) -> Any:
        self.client.open()
        self.node.open()
        link = self.client.begin().sender("s")
        link.set_source(source(None))
        link.set_target(target("orders"))
        link.open()
        self.settle()
        return link

    def send(self, link: Any, body: bytes = MESSAGE) -> None:
        link.start(b"tag-1")
        link.send(body)
        link.finish()
        self.settle()

    def frames(self) -> list[tuple[str, str]]:
        return [(line["direction"], line["frame"]) for line in self.lines]


@pytest.mark.parametrize("seed", range(5))
def test_each_frame_of_both_ways_is_a_line_with_its_fields_and_never_a_body(seed: int):
    talk = Conversation(seed)
    link = talk.open()
    talk.trace.begin()
    for _ in range(5):
        talk.send(link, MESSAGE)
    link.close()
    talk.settle()
    found = talk.frames()
    assert found.count(("in", "transfer")) == 5
    assert found.count(("out", "disposition")) >= 1
    assert ("in", "detach") in found
    transfer = next(line for line in talk.lines if line["frame"] == "transfer")
    assert transfer["fields"]["delivery-tag"] == b"tag-1".hex()
    assert (transfer["fields"]["handle"], transfer["payload_bytes"], transfer["channel"]) == (0, len(MESSAGE), 0)
    (state,) = {json.dumps(line["fields"]["state"]) for line in talk.lines if line["frame"] == "disposition"}
    assert state == '{"accepted": {}}'
    text = json.dumps(talk.lines)
    assert SECRET.decode() not in text
    assert SECRET.hex() not in text
    assert "malformed" not in text


@pytest.mark.parametrize("seed", range(10))
def test_a_trace_that_begins_within_a_frame_begins_with_the_next_whole_one(seed: int):
    talk = Conversation(seed)
    link = talk.open()
    delivery = link.start(b"large")
    link.send(MESSAGE[:5] + SECRET * 500)
    data = talk.client.output()
    cut = talk.random.randint(1, len(data) - 1)
    talk.node.receive(data[:cut])
    talk.trace.begin()
    while data := data[cut:]:
        cut = talk.random.randint(1, len(data))
        talk.node.receive(data[:cut])
    link.abort(delivery)
    talk.settle()
    link.close()
    talk.settle()
    assert {frame for _, frame in talk.frames()} <= {"transfer", "flow", "detach", "disposition"}
    assert SECRET.decode() not in json.dumps(talk.lines)


def test_after_the_end_of_a_trace_the_endpoint_has_its_own_methods_and_bytes_flow_on():
    talk = Conversation()
    link = talk.open()
    assert not any(name in vars(talk.node) for name in TRACED)
    talk.trace.begin()
    talk.send(link)
    count = len(talk.lines)
    talk.trace.end("the time is over")
    talk.trace.end("again")
    assert talk.over == ["the time is over"]
    assert not any(name in vars(talk.node) for name in TRACED)
    talk.send(link)
    assert len(talk.lines) == count


def test_the_end_of_the_connection_ends_the_trace():
    talk = Conversation()
    talk.open()
    talk.trace.begin()
    talk.node.free()
    assert talk.node.is_freed
    assert talk.over == ["the connection ended"]


def test_of_each_second_only_so_many_frames_become_lines_and_the_next_line_says_so():
    talk = Conversation()
    talk.open()
    talk.trace.begin()
    beat = encode_frame(AmqpFrame(0))
    talk.node.receive(beat * (MOST_PER_S + 500))
    assert len(talk.lines) == MOST_PER_S
    talk.now = 1.5
    talk.node.receive(beat)
    assert talk.lines[-1] == {"direction": "in", "channel": 0, "frame": "heartbeat", "skipped": 500}


def test_a_trace_that_its_writer_ends_within_a_read_loses_no_byte():
    talk = Conversation()
    link = talk.open()

    def write(line: dict[str, Any]) -> None:
        talk.lines.append(line)
        talk.trace.end("the file is full")

    talk.trace._write = write
    talk.trace.begin()
    talk.send(link)
    talk.send(link)
    assert len(talk.lines) == 1


@pytest.mark.parametrize("seed", range(20))
def test_bytes_in_any_pieces_are_the_same_frames(seed: int):
    chance = random.Random(seed)
    wanted = [encode_frame(AmqpFrame(n, None, b"" if n % 3 else b"x" * n)) for n in range(1, 40)]
    data, found, frames = b"".join(wanted), [], _Frames()
    while data:
        size = chance.randint(1, 60)
        found += frames.feed(data[:size])
        data = data[size:]
    assert found == wanted


def test_what_is_no_frame_is_a_line_without_its_bytes():
    assert list(_Frames().feed(b"\x00\x00\x00\x03SECRET!!")) == [3]
    line = line_of("in", b"\x00\x00\x00\x10\x02\x00\x00\x00SECRET!!")
    assert line["frame"] == "malformed"
    assert "SECRET" not in json.dumps(line)


def test_long_values_are_cut():
    assert plain("x" * 501) == "x" * 500 + "... (501 characters)"
    assert plain(b"x" * 300).endswith("... (300 bytes)")
    properties = {Symbol(f"key-{number}"): number for number in range(100)}
    value = CompositeValue(table.OPEN, {"container-id": "c", "properties": properties})
    assert len(plain(value)["open"]["properties"]) == 50
