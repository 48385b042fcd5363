"""Run as a process of its own, recorded: a store that is written to, closed, opened again and written to."""

import os
import sys
from pathlib import Path

import broker.store.anchor
import broker.store.sqlite
from broker.store.batch import StoreError
from mesh_tests.crash.storage.plan import Plan

BATCHES = 40
REFUSED = 3
"""Exit code: the store said that it cannot go on."""

# The log is written to the tables often, as it is after gigabytes.
broker.store.sqlite.CHECKPOINT_PAGES = 60
# The recorder sees what is written, not what is changed in mapped memory.
broker.store.anchor.IS_MAPPED = False


def main() -> None:
    plan, directory = Plan(int(sys.argv[1]), BATCHES), Path(sys.argv[2])
    try:
        store = opened(directory)
        promises = os.open(directory / "promises", os.O_WRONLY | os.O_CREAT, 0o600)
        for number, batch in enumerate(plan.batches):
            if number == plan.reopened_before:
                store.close()
                store = opened(directory)
            store.commit(batch)
            os.write(promises, b"%d\n" % number)
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        os._exit(REFUSED)
    os._exit(0)


def opened(directory: Path) -> broker.store.sqlite.SqliteStore:
    store = broker.store.sqlite.SqliteStore(directory)
    store.load()
    return store


if __name__ == "__main__":
    main()
