"""The error of the certificate functions, with a message for the user."""

from __future__ import annotations


class CertsError(Exception):
    """A name, host or file cannot be used; the message says which one and why."""
