"""The error with which either side closed a connection, as told from a socket that was lost."""

from __future__ import annotations

from mesh_tests.unit.wire.pipes import Pipe
from wire.errors import AmqpError


def told(error: AmqpError | None) -> tuple[str, str] | None:
    return None if error is None else (error.condition, error.description)


def test_both_sides_know_the_error_of_a_close() -> None:
    pipe = Pipe()
    pipe.a.close(AmqpError("amqp:invalid-field", "field x"))
    pipe.run()
    assert told(pipe.a.close_error) == told(pipe.b.close_error) == ("amqp:invalid-field", "field x")


def test_a_close_without_an_error_has_none() -> None:
    pipe = Pipe()
    assert pipe.a.close_error is None
    pipe.a.close()
    pipe.run()
    assert pipe.a.close_error is pipe.b.close_error is None


def test_a_socket_lost_within_a_frame_is_no_error_of_the_peer() -> None:
    pipe = Pipe()
    pipe.a.receive(b"\0\0\0\x20")
    assert "in the middle of a frame" in (pipe.a.receive_eof() or "")
    assert pipe.a.close_error is None
