"""The counts of `tollgate serve --processes`, those of processes that have ended included."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from tollgate.cli.server.shared_counts import add_ended, open_shared_counts, render_sums

ENDED = range(11, 31)


def write(folder: Path, file: str, values: Mapping[str, float]) -> None:
    """Write a file as a process counts in it."""
    counts = MmapedDict(str(folder / file))  # type: ignore[no-untyped-call]
    for route, value in values.items():
        key = mmap_key(f"{file[:5]}s", f"{file[:5]}s_total", ["route"], [route], "Words.")
        counts.write_value(key, value, 0.0)  # type: ignore[no-untyped-call]
    counts.close()  # type: ignore[no-untyped-call]


def serve_and_count(folder: Path, pid: int) -> None:
    routes = {f"/{pid % 3}": 0.1 * pid, "/\u00e4" * 50: 2.0}
    for file in (f"counter_{pid}.db", f"histogram_{pid}.db", f"gauge_livesum_{pid}.db"):
        write(folder, file, routes)


def counted(folder: Path) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in render_sums(folder).decode().splitlines()]
    return {name: float(value) for name, _, value in lines if not name.startswith(("#", "gauge"))}


def test_counts_of_processes_that_have_ended_stay_in_one_file(tmp_path: Path) -> None:
    for pid in (7, *ENDED):
        serve_and_count(tmp_path, pid)
    before = counted(tmp_path)
    for pid in ENDED:
        add_ended(tmp_path, pid)
        assert counted(tmp_path) == pytest.approx(before)
    assert {file.name for file in tmp_path.iterdir()} == {
        *("counter_0.db", "histogram_0.db"),
        *("counter_7.db", "histogram_7.db", "gauge_livesum_7.db"),
    }


def test_a_process_that_was_killed_as_it_made_its_file_stops_no_scrape(tmp_path: Path) -> None:
    serve_and_count(tmp_path, 7)
    (tmp_path / "counter_8.db").touch()
    add_ended(tmp_path, 8)
    assert counted(tmp_path)


def test_the_folder_is_in_memory_unless_another_place_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with open_shared_counts() as folder:
        assert folder.parent == tmp_path
    monkeypatch.delenv("TMPDIR")
    with open_shared_counts() as folder:
        assert folder.parent == (Path("/dev/shm") if Path("/dev/shm").exists() else tmp_path)
    assert not folder.exists()
