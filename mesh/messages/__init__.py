"""The work of the commands `send` and `receive`: load, outcomes, shown messages, and bodies too large for memory."""
