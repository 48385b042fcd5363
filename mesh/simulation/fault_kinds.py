"""Which faults are there? By themselves here, so that the command line knows them without the simulator."""

KINDS = ("cut", "crash", "silence", "delay", "broker")
