import json
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from infra import launcher
from infra.state import (
    PORT_NAMES,
    SECRET_NAMES,
    SERVER_PORTS,
    free_port,
    load_or_make_state,
    load_state,
    port_is_free,
    save_state,
    servers_folder,
    write_private,
)
from lakehouse.errors import ConfigError


def test_a_state_is_made_once_and_kept(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    made = load_or_make_state(tmp_path)
    assert load_or_make_state(tmp_path) == made == load_state(tmp_path)


def test_every_installation_has_its_own_secrets(tmp_path: Path) -> None:
    first, second = (load_or_make_state(tmp_path / name) for name in ("a", "b"))
    words = [*first.secrets.values(), *second.secrets.values()]
    assert set(first.secrets) == set(SECRET_NAMES)
    assert len({*words}) == len(words)
    assert all(len(word) >= 24 for word in words)


def test_ports_differ(tmp_path: Path) -> None:
    ports = load_or_make_state(tmp_path).ports
    assert set(ports) == set(PORT_NAMES)
    assert len({*ports.values()}) == len(PORT_NAMES)


def test_only_the_owner_reads_a_private_file_even_one_that_others_could_read_before(tmp_path: Path) -> None:
    path = tmp_path / "server.env"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_secrets_do_not_show_in_a_printed_state(tmp_path: Path) -> None:
    state = load_or_make_state(tmp_path)
    assert not [name for name, word in state.secrets.items() if word in repr(state)]


def test_a_port_is_free_until_somebody_listens() -> None:
    port = free_port()
    assert port_is_free(port)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        assert not port_is_free(port)


def test_a_server_gets_no_port_that_an_outgoing_connection_could_take() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(free_port(), SERVER_PORTS[-1]) < lowest


def test_processes_that_ask_at_the_same_time_get_different_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    for pid in (7001, 7002):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        mine: list[int] = []
        for _ in range(11):
            mine.append(free_port(frozenset(mine)))
        chosen += mine
    assert len({*chosen}) == 22


def test_a_home_given_relative_means_one_folder_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert servers_folder(Path("home")) == tmp_path.resolve() / "home" / "servers"


def test_a_state_of_another_version_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    made = load_or_make_state(tmp_path)
    path = servers_folder(tmp_path) / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "of_a_later_version": 1}))
    assert load_state(tmp_path) == made


def test_a_home_keeps_the_s3_server_that_has_its_data(tmp_path: Path) -> None:
    save_state(tmp_path, replace(load_or_make_state(tmp_path), prepared=True))
    with pytest.raises(ConfigError, match="has its data in MinIO"):
        launcher.start(tmp_path, s3="seaweedfs")
    with pytest.raises(ConfigError, match="choose minio or seaweedfs"):
        launcher.start(tmp_path, s3="ceph")
    assert [row.state for row in launcher.read_status(tmp_path)] == ["stopped"] * 3
