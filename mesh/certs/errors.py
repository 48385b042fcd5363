"""The error class of ``mesh.certs``, with a message for the user."""

from __future__ import annotations


class CertsError(Exception):
    """A certificate cannot be made, found, read or written; the message says which name, host or file and why."""
