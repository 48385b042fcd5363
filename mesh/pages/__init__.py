"""Common parts of self-contained HTML pages: style sheet, chart library, and a policy that allows only their own
scripts.
"""
