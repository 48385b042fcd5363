"""Computes the tables of a report from the records in link logs, with functions from DataFrame to DataFrame of Spark.

The package starts no Spark session, and writes no page.
"""
