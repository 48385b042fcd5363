"""What can go wrong with certificates, in sentences for the user."""

from __future__ import annotations


class CertsError(Exception):
    """A name, host or file cannot be used; the text says which and why."""
