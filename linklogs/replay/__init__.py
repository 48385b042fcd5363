"""Computes the tables of a report from the records in link logs: functions from DataFrame to DataFrame of Spark.

The functions start no Spark session, and write no page.
"""
