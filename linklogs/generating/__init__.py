"""Link logs without a mesh: what nodes would have recorded of traffic that never was, and the truth.

Knows no topology: a plan says which links there are, along which of them messages go, and how often.
"""
