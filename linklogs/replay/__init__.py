"""What the records of a mesh come to: functions from DataFrame to DataFrame, which know no session and no page."""
