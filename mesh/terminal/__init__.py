"""The terminal interface of all commands: options, units, output, error messages and exit codes."""
