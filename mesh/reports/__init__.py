"""Reports of link logs: tables by Spark, findings, a page, and a summary on the terminal."""
