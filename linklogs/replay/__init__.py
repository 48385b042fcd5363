"""Replays the records of a mesh into result tables: functions from DataFrame to DataFrame, without session or page."""
