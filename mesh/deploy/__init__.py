"""Run a topology on this machine: the supervisor, node processes, their work directory, certificates and readiness."""
