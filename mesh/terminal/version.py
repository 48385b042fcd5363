"""Finds the version of the installed amqpmesh, or says that amqpmesh runs from a checkout and is not installed."""

from __future__ import annotations

from importlib import metadata


def read_version() -> str:
    try:
        return metadata.version("amqpmesh")
    except metadata.PackageNotFoundError:
        return "from a checkout that is not installed"
