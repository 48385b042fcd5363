"""Link logs: files with the records of each node's traffic, their writer, and the Spark job that makes reports of them.

The package knows the records only: it imports no code of routers or brokers.
"""
