from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.errors import CatalogError, UnknownNameError
from lakehouse.specs.loader import load_catalog
from lakehouse.tables.columns import arrow_schema, spec_hash, union_columns
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.registry import iceberg_schema
from tests.unit.tables.kernel_lake import ROOT, TABLE, TYPES, open_committer, part, row, rows, schema

ONE_MORE = {**TYPES, "added": "string"}


def test_tables_have_the_properties_that_keep_commits_fast_and_data_safe(tmp_path: Path) -> None:
    table = open_committer(tmp_path).table(TABLE)
    expected = {
        "gc.enabled": "false",
        "commit.manifest.target-size-bytes": "524288",
        "commit.manifest-merge.enabled": "true",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "100",
        "write.delete.isolation-level": "snapshot",
        "write.parquet.compression-codec": "zstd",
        "lakehouse.schema.things.v1": spec_hash(schema()),
    }
    assert expected.items() <= table.properties.items()
    assert [field.name for field in table.spec().fields] == ["source", "dt", "schema_version"]
    assert table.metadata.format_version == 2


def test_every_declared_table_can_be_made(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    catalog = load_catalog(ROOT / "catalog")
    for name in catalog.tables():
        spec = catalog.table_schema(name)
        table = committer.table(name)
        assert table.schema().as_arrow().names == arrow_schema(spec).names
        wanted = {"source_dt_version": ["source", "dt", "schema_version"], "source": ["source"], "none": []}
        assert [field.name for field in table.spec().fields] == wanted[spec.partitioned]


def test_a_registered_version_never_changes(tmp_path: Path) -> None:
    open_committer(tmp_path).table(TABLE)
    changed = schema(description="Something else.")
    with pytest.raises(CatalogError, match=r"catalog/schemas/things/v1\.yaml: has changed .* declare .* as v2\.yaml"):
        open_committer(tmp_path, changed).table(TABLE)
    assert open_committer(tmp_path).table(TABLE).metadata_location.rpartition("/")[2].startswith("00000-")


def test_a_registered_version_never_goes_away(tmp_path: Path) -> None:
    open_committer(tmp_path, schema(), schema(2, ONE_MORE)).table(TABLE)
    with pytest.raises(CatalogError, match=r"catalog/schemas/things/v2\.yaml: is gone"):
        open_committer(tmp_path).table(TABLE)


def test_a_new_version_adds_columns_and_keeps_ids_rows_and_hashes(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    before = committer.append(TABLE, rows(3))
    ids = {field.name: field.field_id for field in committer.table(TABLE).schema().fields}

    wider = {**ONE_MORE, "small": "long", "price": "decimal(20,2)"}
    del wider["yes"]
    newer = schema(2, wider)
    evolved = open_committer(tmp_path, schema(), newer)
    values = row(9, batch="1" * 32, schema_version=2, added="new")
    del values["yes"]
    evolved.append(TABLE, to_arrow([values], newer))
    table = evolved.table(TABLE)
    assert {name: table.schema().find_field(name).field_id for name in ids} == ids
    assert table.properties["lakehouse.schema.things.v2"] == spec_hash(newer)
    found = sorted(evolved.scan(TABLE).to_pylist(), key=lambda one: one["small"])
    assert [one["added"] for one in found] == [None, None, None, "new"]
    assert [one["yes"] for one in found] == [True, False, True, None]
    again = evolved.append(TABLE, rows(3))
    assert (again.changed, again.partitions[0].checksum) == (False, before.partitions[0].checksum)
    assert evolved.replace(TABLE, rows(3), [part()]).changed is False


def test_types_that_one_column_cannot_hold_are_refused() -> None:
    with pytest.raises(CatalogError, match=r"v2\.yaml: fields\.text\.type: is int, an earlier version has string"):
        union_columns((schema(), schema(2, {**TYPES, "text": "int"})))


def test_a_column_is_required_only_where_all_versions_require_it() -> None:
    columns = {one.name: one for one in union_columns((schema(), schema(2, {"batch_id": "string"})))}
    assert columns["batch_id"].required
    late = {one.name: one for one in union_columns((schema(1, {"text": "string"}), schema(2, {"batch_id": "string"})))}
    assert not late["batch_id"].required


def test_the_hash_of_a_version_ignores_spelling_of_defaults() -> None:
    assert spec_hash(schema()) == spec_hash(schema(frame="none", partitioned="source_dt_version"))
    assert spec_hash(schema()) != spec_hash(schema(sort=["text"]))


def test_an_undeclared_table_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="things"):
        open_committer(tmp_path).table("feature.thing")


def test_iceberg_ids_are_unique_and_parts_may_be_null() -> None:
    made = iceberg_schema([schema()])
    assert len(made._lazy_id_to_name) == len(set(made._lazy_id_to_name.values()))
    assert not made.find_field("names.element").required
    assert not made.find_field("heads.value").required
