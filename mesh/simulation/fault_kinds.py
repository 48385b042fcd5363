"""The kinds of faults of a simulation, in a module of their own: the command line imports no simulator for its help."""

KINDS = ("cut", "crash", "silence", "delay", "broker")
