"""What all unit tests share."""

from mesh_tests.engines import free_engines

__all__ = ["free_engines"]
