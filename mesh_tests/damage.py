"""Files that look whole, and cannot be read to their end."""

from pathlib import Path

from pyarrow import parquet


def spoil(path: Path, kind: str, column: str) -> None:
    """Overwrite what a column has for records of a kind; what the file says of itself stays as it is."""
    described = parquet.read_metadata(path)
    names = described.schema.names
    content = bytearray(path.read_bytes())
    for group in (described.row_group(number) for number in range(described.num_row_groups)):
        if group.column(names.index("kind")).statistics.min == kind:
            chunk = group.column(names.index(column))
            begin = chunk.dictionary_page_offset or chunk.data_page_offset
            content[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
