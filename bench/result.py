"""The result of a run as JSON, with the machine and versions it was measured on."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.children import TOP
from bench.figures import Row, Samples
from bench.trees import Pairs

RESULT: Final = TOP / "dist" / "bench.json"


def write_result(
    path: Path,
    *,
    rows: Sequence[Row] = (),
    samples: Samples | None = None,
    against: str | None = None,
    pairs: Mapping[str, Pairs] | None = None,
) -> None:
    """Write the lines of the table and every sample behind them; all times are in seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "commit": _git("rev-parse", "HEAD"),
        "is_changed": bool(_git("status", "--porcelain")),
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "rows": [asdict(row) for row in rows],
        "samples": [
            {"scenario": scenario, "gateway": gateway, "rounds": list(map(asdict, taken))}
            for (scenario, gateway), taken in (samples or {}).items()
        ],
        "against": against,
        # In each pair, the first value is for this checkout.
        "pairs": dict(pairs or {}),
    }
    path.write_text(json.dumps(result, indent=1) + "\n")


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(TOP), *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
