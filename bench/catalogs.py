"""The benchmark's routing file, compiled for the port of its mock upstream."""

import tempfile
from pathlib import Path

from tollgate.routing.file.compile import compile_catalog

_ROUTING = Path(__file__).with_name("routing.yaml")


def compile_bench_catalog(upstream_port: int) -> bytes:
    """Return the compiled catalog, with the mock upstream as its only host."""
    text = _ROUTING.read_text().replace("UPSTREAM", f"http://127.0.0.1:{upstream_port}")
    with tempfile.TemporaryDirectory() as folder:
        routing = Path(folder) / "routing.yaml"
        routing.write_text(text)
        return compile_catalog(routing, dev=True).content
