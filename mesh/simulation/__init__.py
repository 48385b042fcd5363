"""A mesh of real nodes with real engines over in-memory pipes, in virtual time: one seed, one run."""
