"""The errors of the client library; each error has a message and, where known, a fix for the user.

The caller turns an error into an exit code, a log line or a next attempt; ``mesh.terminal.failure`` does this for
commands.
"""

from __future__ import annotations


class MeshError(Exception):
    """An error that is not a bug of amqpmesh, and is shown without a stack trace."""

    def __init__(self, message: str, *, fix: str | None = None, code: str | None = None) -> None:
        """``fix`` tells the user how to solve the problem. ``code`` names the error for programs."""
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.code = code


class Unreachable(MeshError):
    """There is no connection: nobody listens, the peer refused the login, or the connection was lost."""


class TimedOut(MeshError):
    """The peer did not answer, or gave no credit, within the time that the caller allowed."""


class BodyNotKept(MeshError):
    """The body of a message is too large to be held, or its file cannot be written."""
