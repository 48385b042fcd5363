"""The kinds of faults, in a module of their own: the command line needs the kinds without the simulator."""

KINDS = ("cut", "crash", "silence", "delay", "broker")
