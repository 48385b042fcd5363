"""Files of the link log as other readers see them."""

from pathlib import Path

import numpy
import pyarrow
import pytest
from pyarrow import parquet

from linklogs.parquet import RISING, VARIED, batch, batch_of_rows, metadata, open_writer, same, words
from recording.columns import COLUMNS, RecordKind

NODE_ROW = {"kind": "node", "event": "live", "at_us": 5, "run": 7, "role": "router", "clock_us": 3}


@pytest.fixture
def file(tmp_path: Path) -> parquet.ParquetFile:
    place = tmp_path / "7-0.parquet"
    with open_writer(place, metadata("r1", 7, "demo")) as writer:
        writer.write_batch(batch_of_rows([NODE_ROW]))
        writer.write_batch(deliveries(3))
        writer.add_key_value_metadata({"more": "later"})
    return parquet.ParquetFile(place)


def deliveries(count: int) -> pyarrow.RecordBatch:
    given = {
        "kind": same(RecordKind.DELIVERY, count),
        "at_us": numpy.arange(count, dtype=numpy.int64),
        "outcome": words(numpy.arange(count) % 2, ["accepted", "released"]),
        "count": numpy.ones(count, numpy.int64),
    }
    return batch(given, count)


def test_a_file_has_the_columns_of_the_schema_in_its_order_as_text_and_whole_numbers(
    file: parquet.ParquetFile,
) -> None:
    found = [(field.name, str(field.type)) for field in file.schema_arrow]
    assert found == [(column.name, column.type) for column in COLUMNS]


def test_what_a_record_does_not_fill_in_is_null(file: parquet.ParquetFile) -> None:
    first, second = file.read().to_pylist()[:2]
    assert {name: value for name, value in first.items() if value is not None} == NODE_ROW
    filled = {"kind": "delivery", "at_us": 0, "outcome": "accepted", "count": 1}
    assert {name: value for name, value in second.items() if value is not None} == filled


def test_each_batch_is_a_row_group_whose_statistics_tell_its_kind(file: parquet.ParquetFile) -> None:
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    kinds = [group.column(0).statistics for group in groups]
    assert [(kind.min, kind.max) for kind in kinds] == [("node", "node"), ("delivery", "delivery")]


def test_times_are_packed_and_all_else_has_a_dictionary(file: parquet.ParquetFile) -> None:
    group = file.metadata.row_group(1)
    by_name = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert all("DELTA_BINARY_PACKED" in by_name[name].encodings for name in RISING)
    assert all(by_name[name].has_dictionary_page for name in by_name if name not in RISING)
    packed = {name: column.compression for name, column in by_name.items()}
    assert packed == {name: "ZSTD" if name in VARIED else "SNAPPY" for name in by_name}


def test_a_file_says_whose_it_is_and_what_was_added_later(file: parquet.ParquetFile) -> None:
    described = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    assert described == {
        "amqpmesh.link-log": "1",
        "amqpmesh.node": "r1",
        "amqpmesh.run": "7",
        "amqpmesh.mesh": "demo",
        "more": "later",
    }


def test_a_column_that_no_record_has_is_refused() -> None:
    with pytest.raises(KeyError, match="unknown column 'colour'"):
        batch({"colour": numpy.zeros(1)}, 1)
