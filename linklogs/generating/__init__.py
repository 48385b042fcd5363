"""Link logs without a mesh: records of invented traffic, as nodes would have made them, and the truth about them.

Knows no topology: a plan has the links, the routes of messages over the links, and the rates.
"""
