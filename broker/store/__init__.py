"""The store of a broker: the files with its accepted messages, which survive a restart. See FORMAT.md."""
