"""The link log: files of nodes' records, for Spark to read, and reports of these. Knows records only, not nodes."""
