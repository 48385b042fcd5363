"""The writer of link logs: one process on a host moves records from the rings of the host's nodes into Parquet files.

A ring is a file in memory into which a node writes its records.
"""
