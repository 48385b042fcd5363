"""The errors of the client library; each error has a message and, where known, a fix for the user.

The caller of the library turns an error into an exit code, a log line or another attempt; for commands,
``mesh.terminal.failure`` turns an error into an exit code and a message.
"""

from __future__ import annotations


class MeshError(Exception):
    """An error with its cause outside of amqpmesh's code; commands show its message without a stack trace."""

    def __init__(self, message: str, *, fix: str | None = None, code: str | None = None) -> None:
        """Make the error; ``fix`` says how the user solves the problem, ``code`` names the error for programs."""
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.code = code


class Unreachable(MeshError):
    """The client has no connection: nothing listens, the peer refused the login, or the connection ended."""


class TimedOut(MeshError):
    """The peer did not answer, or gave no credit, within the time that the caller allowed."""


class BodyNotKept(MeshError):
    """A received body is too large for memory, or its file cannot be written; the client does not settle the message,
    and the receiver takes no further message.
    """
