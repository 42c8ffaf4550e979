"""`make soak`: an hour on two processes with faults, as a table and as JSON in dist/.

Usage: python -m tests.soak [SECONDS] [REQUESTS_PER_SECOND] [SEED]
"""

import asyncio
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from tests.ministack import running_ministack
from tests.soak.criteria import Bounds, Verdict
from tests.soak.plan import Plan
from tests.soak.run import SoakFindings, soak, staged

_DIST: Final = Path(__file__).parents[2] / "dist"
_MINUTES_PER_LINE: Final = 5
# Less says nothing of memory.
_SECONDS_MIN: Final = 1_800
_HEAD: Final = (
    "from s | delivered | refused | other | added ms p50 | p99"
    " | process: MB, descriptors, connections, tasks, threads"
)


async def main(seconds: float, requests_per_second: float, seed: int) -> int:
    """Soak, print, keep, and return the exit status."""
    plan = Plan(seconds=seconds, requests_per_second=requests_per_second, seed=seed)
    print(f"seed {seed}, {seconds:g} s, {requests_per_second:g} requests a second", flush=True)
    with TemporaryDirectory(prefix="soak-") as folder, running_ministack(Path(folder)) as url:
        async with staged(url, Path(folder), seed) as stage:
            findings = await soak(stage, plan)
    print(table(findings), flush=True)
    verdicts = findings.verdicts(Bounds())
    print(*verdicts, sep="\n")
    for violation in findings.violations[:20]:
        print("VIOLATION", violation)
    for name, count in sorted(findings.counts.items()):
        print(f"{count:>8}  {name}")
    keep(findings, verdicts, _DIST / "soak.json")
    return int(not all(it.holds for it in verdicts))


def table(findings: SoakFindings) -> str:
    """Return a line for every five minutes: what was told, added and used."""
    every_s = findings.plan.minute_s * _MINUTES_PER_LINE
    lines = [_HEAD]
    for begins_s in range(0, int(findings.plan.seconds), int(every_s)):
        endings = Counter(
            it.ending
            for it in findings.told
            if begins_s <= it.sent_s - findings.began_s < begins_s + every_s
        )
        delivered, refused = endings.pop("delivered", 0), endings.pop("refused", 0)
        added = sorted(
            value
            for minute in findings.minutes
            if begins_s <= minute.number * findings.plan.minute_s < begins_s + every_s
            for value in minute.added_ms
        )
        p50, p99 = (added[int(len(added) * it)] if added else 0.0 for it in (0.5, 0.99))
        last = {
            it.server: it for it in findings.samples if begins_s <= it.at_s < begins_s + every_s
        }
        used = "; ".join(
            f"{it.server}: {it.rss_mb:.1f}, {it.descriptors}, {it.connections}, {it.tasks},"
            f" {it.threads}"
            for it in last.values()
        )
        lines.append(
            f"{begins_s} | {delivered} | {refused} | {endings.total()} | {p50:.1f} | {p99:.1f}"
            f" | {used}"
        )
    return "\n".join(lines)


def keep(findings: SoakFindings, verdicts: list[Verdict], file: Path) -> None:
    """Write what was measured as JSON."""
    file.parent.mkdir(exist_ok=True)
    kept = {
        "plan": asdict(findings.plan),
        "faults": [asdict(it) for it in findings.faults],
        "samples": [asdict(it) for it in findings.samples],
        "at_rest": [asdict(it) for it in findings.at_rest],
        "minutes": [asdict(it) for it in findings.minutes],
        "counts": findings.counts,
        "violations": findings.violations,
        "verdicts": [{**asdict(it), "holds": it.holds} for it in verdicts],
    }
    file.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1))


if __name__ == "__main__":
    arguments = [float(it) for it in sys.argv[1:]]
    if arguments and arguments[0] < _SECONDS_MIN:
        sys.exit(f"A soak needs {_SECONDS_MIN} s at least, to say whether memory grows.")
    seconds, rate, seed = [*arguments, *(3_600.0, 6.0, 16.0)[len(arguments) :]]
    sys.exit(asyncio.run(main(seconds, rate, int(seed))))
