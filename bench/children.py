"""Child processes, and the CPU time and memory of their process trees."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOP = Path(__file__).parent.parent
_STOP_S = 10.0
_CPUS = sorted(os.sched_getaffinity(0))
# Measured processes have only these credentials, and everything they reach is on this machine.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "BENCH_API_KEY": "bench",
}


def announce(**facts: Any) -> None:
    """Write one line with the facts that the parent process needs to reach this process."""
    print(json.dumps(facts), flush=True)


@dataclass(frozen=True)
class Child:
    """A running process, with the facts that it announced."""

    pid: int
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """The port on 127.0.0.1 that the process listens on."""
        return int(self.facts["port"])

    def cpu_s(self) -> float:
        """Return the CPU seconds used by all threads of the process tree."""
        return sum(_thread_cpu_ns(pid) for pid in list_process_ids(self.pid)) / 1e9

    def resident_mb(self) -> float:
        """Return the resident memory of the process tree in MB."""
        return sum(_resident_kb(pid) for pid in list_process_ids(self.pid)) / 1024


@contextmanager
def child(module: str, *arguments: str, measured: bool = True, tree: Path = TOP) -> Iterator[Child]:
    """Run `python -m module` of a checkout until the block ends.

    A measured process has the last CPU to itself, like a function with one vCPU. All other
    processes share the first CPU.
    """
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=tree,
            env=environment_of(tree),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            pin(process.pid, last=measured)
            line = process.stdout.readline()
            if not line:
                log.seek(0)
                raise RuntimeError(f"{module} did not start:\n{log.read()}")
            yield Child(process.pid, json.loads(line))
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def environment_of(tree: Path) -> dict[str, str]:
    """Return the environment of a process that runs the code of a checkout."""
    return {**os.environ, "PYTHONPATH": f"{tree / 'functions'}{os.pathsep}{tree}"}


def pin(pid: int, *, last: bool) -> None:
    """Bind a process (0: this one) to the last or the first CPU that this process may use."""
    os.sched_setaffinity(pid, {_CPUS[-1] if last else _CPUS[0]})


def list_process_ids(root: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _thread_cpu_ns(pid: int) -> int:
    return sum(
        int(schedstat.read_text().split()[0])
        for schedstat in Path(f"/proc/{pid}/task").glob("*/schedstat")
    )


def _resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
