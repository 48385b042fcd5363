"""The link log: what nodes record, in files that Spark reads, and reports of it. Knows nodes by their records only."""
