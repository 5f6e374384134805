from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lakehouse.errors import SchemaMismatch
from lakehouse.model.partition import Partition
from lakehouse.tables import split
from lakehouse.tables.content import content_hash
from lakehouse.tables.names import How, fingerprint_ids, parse_name
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.split import Slice, file_frames, key_of, partition_of, split_frame
from tests.unit.tables.kernel_lake import DAY, part, row, rows, schema


def test_each_partition_gets_its_rows_sorted_and_hashed() -> None:
    frame = pa.concat_tables([rows(3, "bb"), rows(4, "aa"), rows(2, "bb", first=10)])
    slices = split_frame(frame, schema())
    assert [one.key for one in slices] == [("aa", DAY, 1), ("bb", DAY, 1)]
    assert [one.frame.num_rows for one in slices] == [4, 5]
    assert [f"{one.checksum:032x}" for one in slices] == [content_hash(one.frame) for one in slices]
    for one in slices:
        times = one.frame.column("at").to_pylist()
        assert times == sorted(times, reverse=True)
    assert content_hash(pa.concat_tables([one.frame for one in slices])) == content_hash(frame)


def test_an_empty_frame_has_no_slices() -> None:
    assert split_frame(rows(0), schema()) == []


def test_a_name_that_is_no_code_name_never_becomes_a_folder() -> None:
    with pytest.raises(SchemaMismatch, match="field source: expected a code name"):
        split_frame(to_arrow([row(0, source="../up")], schema()), schema())


def test_keys_are_what_a_table_is_partitioned_by() -> None:
    by_source, whole = schema(partitioned="source"), schema(partitioned="none")
    assert key_of(part("aa"), schema()) == ("aa", DAY, 1)
    assert key_of(part("aa"), by_source) == ("aa",)
    assert key_of(part("aa"), whole) == ()
    assert partition_of(("aa", DAY, 1)) == part("aa")
    assert partition_of(("aa",)) == Partition("aa", dt.date.min, 0)
    assert partition_of(()) == Partition("", dt.date.min, 0)
    days = to_arrow([row(0), row(1, dt=DAY + dt.timedelta(days=1))], schema())
    assert [one.frame.num_rows for one in split_frame(days, by_source)] == [2]
    assert [one.frame.num_rows for one in split_frame(days, whole)] == [2]


def test_files_do_not_grow_out_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = rows(100)
    monkeypatch.setattr(split, "FILE_BYTES", frame.nbytes // 4)
    frames = file_frames(Slice(("aa", DAY, 1), frame, 0))
    assert 4 <= len(frames) <= 5
    assert pa.concat_tables(frames).equals(frame)


def test_frames_beyond_two_gibibytes_are_sorted_with_wide_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = split_frame(rows(20), schema())
    monkeypatch.setattr(split, "WIDE_BYTES", 1)
    (wide,) = split_frame(rows(20), schema())
    assert wide.frame.schema.field("raw").type == pa.large_binary()
    assert [wide.checksum] == [one.checksum for one in narrow]
    assert wide.frame.to_pylist() == narrow[0].frame.to_pylist()


def test_a_frame_of_an_older_version_is_sorted_by_what_it_has() -> None:
    older = schema(1, {"batch_id": "string"})
    frame = to_arrow([{"source": "aa", "dt": DAY, "schema_version": 1, "batch_id": "b"}], older)
    assert [one.frame.num_rows for one in split_frame(frame, schema(2))] == [1]


def test_names_say_what_a_file_holds() -> None:
    batch = "a" * 32
    assert fingerprint_ids([batch]) == (How.BATCH, batch)
    assert fingerprint_ids(["not a fingerprint"])[0] is How.MIXED
    assert fingerprint_ids([batch, "b" * 32]) == fingerprint_ids(["b" * 32, batch])
    assert parse_name("s3://bucket/t/data/20240501_120000_00001_abcde-f.parquet") is None
