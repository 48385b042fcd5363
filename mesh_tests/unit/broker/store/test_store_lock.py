"""A store whose file `lock` was deleted while a broker uses it is not opened by another."""

from pathlib import Path

import pytest

from broker.store.batch import StoreError
from broker.store.read_store import reading
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check


def test_a_store_is_not_used_twice_though_its_lock_file_was_deleted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    store.load()
    (tmp_path / "data" / "lock").unlink()
    with pytest.raises(StoreError, match="is in use by process"):
        check(tmp_path / "data")
    with reading(tmp_path / "data", may_be_used=True) as seen:
        assert seen.is_used
    with pytest.raises(StoreError, match="is in use by a process whose file `lock` was deleted"):
        SqliteStore(tmp_path / "data")
    store.close()
    SqliteStore(tmp_path / "data").close()
