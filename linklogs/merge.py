"""Merges several files of one node's link log into one, in bounded memory, with row groups as in any other file.

Each file opens with a snapshot: records of the node, its connections, links and queues then. The merge keeps the first
snapshot; of later snapshots it keeps the record of the node, and records of connections, links and other things that no
earlier file has. The state at a later time follows from the first snapshot and the records since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow
from pyarrow import compute, parquet

from linklogs.file_names import SUFFIX, UNREAD
from linklogs.live_files import MERGED, replaced_by
from linklogs.parquet import MOVED, SCHEMA, TOLD, open_writer
from linklogs.private_files import replacing
from linklogs.repeat_filter import RepeatFilter
from recording.columns import COLUMNS, REPLACES_KEY, SCHEMA_VERSION, VERSION_KEY, RecordKind

DRAFT: Final = ".merging"
"""The end of the name of a merged file while the file is written."""
GROUP_ROWS: Final = 1 << 19

Kinds = tuple[RecordKind, ...]
_GROUPS: Final[tuple[Kinds, ...]] = (TOLD, *((kind,) for kind in MOVED))
"""The row groups of a merged file: all state records share row groups, and each kind of movement has its own."""
_TEXT: Final = [column.name for column in COLUMNS if column.type == "string"]
_OF_THE_FILE: Final = (REPLACES_KEY.encode(), b"ARROW:schema")


class UnreadableFile(Exception):
    """A file of a link log cannot be merged; the message names the file, the content found and the content expected."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be merged, with its footer; the file is open only while it is read, so there may be many sources."""

    path: Path
    footer: parquet.FileMetaData

    @property
    def described(self) -> Mapping[bytes, bytes]:
        """The metadata in the footer of the file, by key."""
        return self.footer.metadata or {}

    def groups_of(self, kinds: Kinds) -> list[int]:
        """Return the numbers of row groups that may have records of the kinds, by the statistics in the footer."""
        return [group for group in range(self.footer.num_row_groups) if _may_have(self.footer.row_group(group), kinds)]

    @contextmanager
    def opened(self) -> Iterator[parquet.ParquetFile]:
        """Open the file. Raises UnreadableFile, also if the caller's reads within the context fail."""
        text = [name for name in self.footer.schema.names if name in _TEXT]
        try:
            with parquet.ParquetFile(self.path, metadata=self.footer, read_dictionary=text) as file:
                yield file
        except (OSError, pyarrow.ArrowException) as error:
            raise UnreadableFile(f"{self.path}: expected complete records, got: {first_line(error)}") from error


def source_of(path: Path) -> Source:
    """Read a file's footer, and return the file as a source of a merge.

    Raises UnreadableFile for a file that is no link log, has another schema version, or has a column that link logs do
    not have.
    """
    try:
        footer = parquet.read_metadata(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise UnreadableFile(f"{path}: expected a complete Parquet file, got: {first_line(error)}") from error
    version = (footer.metadata or {}).get(VERSION_KEY.encode(), b"none").decode(errors="replace")
    if version != str(SCHEMA_VERSION) or not _fits(footer.schema.to_arrow_schema()):
        raise UnreadableFile(f"{path}: expected schema version {SCHEMA_VERSION} and its columns, got version {version}")
    return Source(path, footer)


def merge(hour: Path, sources: Sequence[Source]) -> None:
    """Merge the sources into a new file in ``hour``, the directory of a node and hour; the sources stay.

    After UnreadableFile or OSError there is no new file.
    """
    target = hour / _name_of(sources)
    replaced = sorted({name for source in sources for name in (source.path.name, *replaced_by(source.path))})
    described = {key: value for key, value in sources[-1].described.items() if key not in _OF_THE_FILE}
    described[REPLACES_KEY.encode()] = json.dumps(replaced).encode()
    with (
        replacing(target, hour / f"{UNREAD}{target.name}{DRAFT}") as file,
        _closing(open_writer(file, _text(described))) as writer,
    ):
        for kinds in _GROUPS:
            for table in _gathered(_of_kinds(sources, kinds)):
                writer.write_table(table, row_group_size=GROUP_ROWS)


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


@contextmanager
def _closing(writer: parquet.ParquetWriter) -> Iterator[parquet.ParquetWriter]:
    try:
        yield writer
        writer.close()
    except BaseException:
        # The writer is marked as closed, else pyarrow would close the writer at garbage collection, and write to a file
        # that is closed by then.
        writer.is_open = False
        raise


def _text(described: Mapping[bytes, bytes]) -> dict[str, str]:
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in described.items()}


def _name_of(sources: Sequence[Source]) -> str:
    """Return the name of the merged file, from the names of the first and the last source.

    The name sorts right behind the first source and behind earlier merges with this source, and no other file has it.
    """
    stems = [source.path.name.removesuffix(SUFFIX) for source in sources]
    return f"{stems[0].partition(MERGED)[0]}{MERGED}{stems[-1].partition(MERGED)[2] or stems[-1]}{SUFFIX}"


def _fits(found: pyarrow.Schema) -> bool:
    """Whether ``found``, the schema of a file, has column `kind`, and only columns and types of link logs.

    Other columns of link logs may be missing: they become null.
    """
    wanted = {column.name: column.type for column in COLUMNS}
    return "kind" in found.names and all(wanted.get(field.name) == str(field.type) for field in found)


def _may_have(group: parquet.RowGroupMetaData, kinds: Kinds) -> bool:
    stated = _stated_kinds(group)
    return stated is None or any(stated[0] <= kind <= stated[1] for kind in kinds)


def _stated_kinds(group: parquet.RowGroupMetaData) -> tuple[str, str] | None:
    columns = [group.column(i) for i in range(group.num_columns)]
    stated = next(column.statistics for column in columns if column.path_in_schema == "kind")
    return (stated.min, stated.max) if stated is not None and stated.has_min_max else None


def _of_kinds(sources: Sequence[Source], kinds: Kinds) -> Iterator[pyarrow.Table]:
    known = RepeatFilter()
    for source in sources:
        if groups := source.groups_of(kinds):
            begun: dict[int, int] = {}
            with source.opened() as file:
                for group in groups:
                    found = _rows(file, group, kinds)
                    yield known.news_of(found, begun) if kinds == TOLD else found


def _rows(file: parquet.ParquetFile, group: int, kinds: Kinds) -> pyarrow.Table:
    found = file.read_row_group(group, _columns_of(file, kinds))
    stated = _stated_kinds(file.metadata.row_group(group))
    if stated is None or stated[0] != stated[1] or stated[0] not in kinds:
        found = found.filter(compute.is_in(found["kind"], pyarrow.array(kinds, pyarrow.string())))
    return _in_schema(found)


def _columns_of(file: parquet.ParquetFile, kinds: Kinds) -> list[str] | None:
    """Return the columns to read for records of these kinds; None: all columns, for state records.

    Records of movements are many, so only columns of their kinds are read: nulls take as much memory as numbers.
    """
    if kinds == TOLD:
        return None
    return [column.name for column in COLUMNS if (set(kinds) & set(column.kinds) or not column.kinds)
            and column.name in file.schema_arrow.names]  # fmt: skip


def _in_schema(found: pyarrow.Table) -> pyarrow.Table:
    nulls = {kind: pyarrow.nulls(found.num_rows, kind) for kind in set(SCHEMA.types)}
    columns = [
        found[field.name].cast(field.type) if field.name in found.column_names else nulls[field.type]
        for field in SCHEMA
    ]
    return pyarrow.Table.from_arrays(columns, schema=SCHEMA)


def _gathered(tables: Iterator[pyarrow.Table]) -> Iterator[pyarrow.Table]:
    """Join successive tables to tables of at least GROUP_ROWS rows each; only the last may be smaller."""
    waiting: list[pyarrow.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(table.num_rows for table in waiting) >= GROUP_ROWS:
            yield _joined(waiting)
            waiting = []
    if any(table.num_rows for table in waiting):
        yield _joined(waiting)


def _joined(tables: list[pyarrow.Table]) -> pyarrow.Table:
    return pyarrow.concat_tables(tables).unify_dictionaries().combine_chunks()
