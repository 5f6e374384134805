from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehouse.errors import ConflictError, InvariantError, SnapshotCorrupt, UnavailableError, UnknownNameError
from lakehouse.snapshots.bodies import put_body, read_body
from lakehouse.snapshots.stores import DirectoryStore

WHEN = datetime(2026, 3, 1, 4, tzinfo=UTC)
PUT = """
import sys
from pathlib import Path
from lakehouse.errors import ConflictError
from lakehouse.snapshots.stores import DirectoryStore
store = DirectoryStore(Path(sys.argv[1]))
won = 0
for number in range(30):
    try:
        data, about = sys.argv[2].encode() * 1000, {"who": sys.argv[2]}
        store.put(f"race/{number}", data, content_type="text/plain", metadata=about)
        won += 1
    except ConflictError:
        pass
print(won)
"""


def test_an_object_is_read_back_with_its_metadata(store: DirectoryStore) -> None:
    store.put("a/b.html", b"data", content_type="text/html", metadata={"Crawled-At": "2026", "name": "云"})
    stored = store.get("a/b.html")
    assert stored.data == b"data"
    assert stored.metadata["crawled-at"] == "2026"
    assert stored.metadata["name"] == "?"
    info = store.head("a/b.html")
    assert info is not None
    assert (info.size, info.metadata) == (4, stored.metadata)


def test_the_same_again_is_no_error_and_other_content_is(store: DirectoryStore, tmp_path: Path) -> None:
    store.put("a", b"one", content_type="text/plain", metadata={})
    before = (tmp_path / "objects/data/a").stat().st_mtime_ns
    store.put("a", b"one", content_type="text/plain", metadata={})
    store.put("a", b"packed otherwise", content_type="text/plain", metadata=store.get("a").metadata)
    with pytest.raises(ConflictError, match="already holds other content"):
        store.put("a", b"two", content_type="text/plain", metadata={})
    assert store.get("a").data == b"one"
    assert (tmp_path / "objects/data/a").stat().st_mtime_ns == before


def test_what_is_not_there_is_unknown(store: DirectoryStore) -> None:
    assert store.head("no/such") is None
    with pytest.raises(UnknownNameError, match="no/such"):
        store.get("no/such")
    assert list(store.list("no/")) == []


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "/abs", "meta/../../x"])
def test_no_key_leaves_the_folder(store: DirectoryStore, tmp_path: Path, key: str) -> None:
    with pytest.raises(InvariantError):
        store.put(key, b"x", content_type="text/plain", metadata={})
    with pytest.raises(InvariantError):
        store.get(key)
    assert not (tmp_path / "outside").exists()


def test_listing_goes_by_prefix_in_order_and_sees_no_unfinished_file(store: DirectoryStore, tmp_path: Path) -> None:
    for key in ("snap/b/1", "snap/a/2", "snap/a/10", "batch/a/1", "snapx"):
        store.put(key, key.encode(), content_type="text/plain", metadata={})
    (tmp_path / "objects/data/snap/a/3.99.ab.part").write_bytes(b"half")
    assert [info.key for info in store.list("snap/")] == ["snap/a/10", "snap/a/2", "snap/b/1"]
    assert [info.key for info in store.list("snap/a/1")] == ["snap/a/10"]
    assert len(list(store.list(""))) == 5


def test_two_processes_never_mix_one_object(store: DirectoryStore, tmp_path: Path) -> None:
    runs = [
        subprocess.Popen([sys.executable, "-c", PUT, str(tmp_path / "objects"), who], stdout=subprocess.PIPE, text=True)
        for who in ("a", "b")
    ]
    wins = [int(run.communicate()[0]) for run in runs]
    assert sum(wins) == 30
    for info in store.list("race/"):
        assert store.get(info.key).data == info.metadata["who"].encode() * 1000


def test_a_folder_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UnavailableError, match="file"):
        DirectoryStore(tmp_path / "file").put("a", b"x", content_type="text/plain", metadata={})


def test_a_body_is_read_only_if_it_is_what_was_stored(store: DirectoryStore, tmp_path: Path) -> None:
    body = "<html>正文".encode("gb18030") * 100
    sha256 = put_body(store, "snap/x.html.zst", body, crawled_at=WHEN, media_type="text/html", charset="gb18030")
    assert read_body(store, "snap/x.html.zst", sha256) == body
    assert read_body(store, "snap/x.html.zst") == body
    metadata = store.get("snap/x.html.zst").metadata
    assert metadata["crawled-at"] == "2026-03-01T04:00:00+00:00"
    assert (metadata["media-type"], metadata["encoding"], metadata["sha256"]) == ("text/html", "gb18030", sha256)
    with pytest.raises(SnapshotCorrupt, match="expected"):
        read_body(store, "snap/x.html.zst", "0" * 64)
    path = tmp_path / "objects/data/snap/x.html.zst"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(SnapshotCorrupt, match=r"snap/x\.html\.zst"):
        read_body(store, "snap/x.html.zst", sha256)
