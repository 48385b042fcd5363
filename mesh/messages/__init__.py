"""The commands `send` and `receive`: load, outcomes, message formats and large bodies."""
