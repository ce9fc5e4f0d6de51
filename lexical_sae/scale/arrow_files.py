"""Parquet and Arrow files, a batch of rows at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lexical_sae.utils.errors import DataError

BATCH = 1024
"""Rows that are decoded at a time."""


class ParquetRows:
    """A Parquet file; of a row group, only pages are held."""

    def __init__(self, path: str) -> None:
        try:
            self._file = pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
        except pa.ArrowException as error:
            raise DataError(f"{path} is not a complete Parquet file ({error}); write it again") from error
        self.names: list[str] = self._file.schema_arrow.names

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """The rows of some columns, with the share of the file that is read after them."""
        total, done = max(1, self._file.metadata.num_rows), 0
        for batch in self._file.iter_batches(BATCH, columns=list(columns), use_threads=False):
            done += len(batch)
            yield batch, done / total


class ArrowRows:
    """An Arrow (Feather) file, mapped into memory; `datasets` writes the stream form under the same ending."""

    def __init__(self, path: str) -> None:
        mapped = pa.memory_map(path)
        try:
            reader = pa.ipc.open_file(mapped)
            self._batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        except pa.ArrowException:
            mapped.seek(0)
            try:
                reader = self._batches = pa.ipc.open_stream(mapped)
            except pa.ArrowException as error:
                raise DataError(f"{path} is not a complete Arrow file ({error}); write it again") from error
        self._mapped = mapped
        self.names: list[str] = reader.schema.names

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """The rows of some columns, with the share of the file that is read after them."""
        size = max(1, self._mapped.size())
        for batch in self._batches:
            for start in range(0, len(batch), BATCH):
                yield batch.slice(start, BATCH).select(list(columns)), self._mapped.tell() / size


ARROW_FILES: Mapping[str, Callable[[str], ParquetRows | ArrowRows]] = {
    ".parquet": ParquetRows,
    ".feather": ArrowRows,
    ".arrow": ArrowRows,
}
"""By ending."""
