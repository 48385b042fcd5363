"""The writer: one process per host turns the rings of its nodes into files of the link log."""
