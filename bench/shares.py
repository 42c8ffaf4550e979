"""Limits for commands: the CPU share and the memory of a Lambda function of a given size."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.children import list_process_ids

# "Configure Lambda function memory": a function with 1,769 MB has one vCPU.
VCPU_MB: Final = 1_769
# Lambda's period is not published; the kernel's default would cause long pauses at small shares.
_PERIOD_US: Final = 20_000
# The usual weight is 1,024; with this weight, other work waits while a function and its environment
# run.
_CPU_SHARES: Final = 1 << 18
_CPU, _MEMORY = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/memory")
_ENDED_S: Final = 5.0


@contextmanager
def limited(memory_mb: int, folder: Path) -> Iterator[Path]:
    """Yield a wrapper script that runs its arguments within the limits of a size.

    Raises SystemExit if Linux control groups, version 1, are not writable.
    """
    name = f"tollgate-bench-{os.getpid()}-{memory_mb}"
    groups = [root / name for root in (_CPU, _MEMORY)]
    try:
        for group in groups:
            group.mkdir()
        quota_us = round(_PERIOD_US * memory_mb / VCPU_MB)
        (groups[0] / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (groups[0] / "cpu.cfs_quota_us").write_text(str(quota_us))
        (groups[0] / "cpu.shares").write_text(str(_CPU_SHARES))
        (groups[1] / "memory.limit_in_bytes").write_text(str(memory_mb << 20))
    except OSError as refused:
        raise SystemExit(f"the sizes need root and control groups, version 1: {refused}") from None
    script = folder / name
    joins = "\n".join(f"echo $$ > {group}/cgroup.procs" for group in groups)
    script.write_text(f'#!/bin/sh\n{joins}\nexec "$@"\n')
    script.chmod(0o755)
    try:
        yield script
    finally:
        for group in groups:
            _remove(group)


@contextmanager
def preferred() -> Iterator[None]:
    """Run the block and its child processes with priority over other work on the machine."""
    group = _CPU / f"tollgate-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.shares").write_text(str(_CPU_SHARES))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as refused:
        raise SystemExit(f"the sizes need root and control groups, version 1: {refused}") from None
    try:
        yield
    finally:
        for pid in list_process_ids(os.getpid()):
            (_CPU / "cgroup.procs").write_text(str(pid))
        _remove(group)


def _remove(group: Path) -> None:
    """Remove a group once the kernel has removed its last process."""
    until_s = time.monotonic() + _ENDED_S
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.01)
        else:
            return
