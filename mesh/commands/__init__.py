"""One module per sub-command, imported only when that sub-command runs."""
