"""Implementations of the operators' commands: status, link costs, queues, stores, link logs, machine checks."""
