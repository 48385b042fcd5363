"""Generates link logs without a running mesh: records of invented traffic in the nodes' file format, and the true
totals.

This package knows no topology: a `LogPlan` lists the links, the routes of messages over the links, and the rates.
"""
