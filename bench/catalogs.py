"""The routing file of the benchmark, for its upstream."""

import tempfile
from pathlib import Path

from tollgate.routing.file.compile import compile_catalog

_ROUTING = Path(__file__).with_name("routing.yaml")


def bench_catalog_json(upstream_port: int) -> bytes:
    """The compiled catalog whose providers are the mock upstream."""
    text = _ROUTING.read_text().replace("UPSTREAM", f"http://127.0.0.1:{upstream_port}")
    with tempfile.TemporaryDirectory() as folder:
        routing = Path(folder) / "routing.yaml"
        routing.write_text(text)
        return compile_catalog(routing).content
