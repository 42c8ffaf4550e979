"""Measurement of a routing file of 300 models: checking on a laptop, and loading in a function."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from bench.catalog_300 import make_routing
from bench.children import TOP
from bench.figures import Row
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.planning.catalog import Catalog

_MODELS = 300
_CHECK = "from tollgate.cli.main import main; main()"
_CHECK_MAX_S = 1.0
_LOAD_MAX_S = 0.010
_START_MAX_S = 0.002


def measure_catalogs(runs: int) -> list[Row]:
    """Return the table lines for `tollgate check`, and for loading the compiled catalog."""
    with tempfile.TemporaryDirectory() as folder:
        routing_file = Path(folder) / "routing.yaml"
        routing_file.write_text(make_routing(_MODELS))
        check_s = median(_check_s(routing_file) for _ in range(min(runs, 3)))
        content = compile_catalog(routing_file).content
    load_s = median(_load_s(Catalog.from_json, content) for _ in range(runs))
    start_s = median(_load_s(Catalog.from_build, content) for _ in range(runs))
    return [
        Row(
            figure=f"`tollgate check` of {_MODELS} models",
            ours=f"{check_s:.2f} s",
            target=f"≤ {_CHECK_MAX_S:g} s",
            met=check_s <= _CHECK_MAX_S,
        ),
        Row(
            figure=f"Loading a compiled catalog of {_MODELS} models",
            ours=f"{load_s * 1e3:.1f} ms",
            target=f"≤ {_LOAD_MAX_S * 1e3:g} ms",
            met=load_s <= _LOAD_MAX_S,
        ),
        Row(
            figure=f"The same at a start, of {_MODELS} that the build has checked",
            ours=f"{start_s * 1e3:.1f} ms",
            target=f"≤ {_START_MAX_S * 1e3:g} ms",
            met=start_s <= _START_MAX_S,
        ),
    ]


def _check_s(routing_file: Path) -> float:
    start_s = perf_counter()
    subprocess.run(
        [sys.executable, "-c", _CHECK, "check", str(routing_file)],
        cwd=TOP,
        env={"PYTHONPATH": str(TOP / "functions")},
        check=True,
        capture_output=True,
    )
    return perf_counter() - start_s


def _load_s(load: Callable[[bytes], object], content: bytes) -> float:
    start_s = process_time()
    load(content)
    return process_time() - start_s
