"""Reports of link logs: tables computed by Spark, findings in words, an HTML page, and a summary on the terminal."""
