"""The one process of a host that turns the rings of its nodes into files of the link log."""
