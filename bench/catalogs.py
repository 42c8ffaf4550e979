"""Routing files of the benchmark: one for its upstream, one as large as a file gets."""

import tempfile
from pathlib import Path

from tollgate.routing.compile import compile_catalog

_ROUTING = Path(__file__).with_name("routing.yaml")
_MODEL = """\
  {author}/model-{number}:
    name: Model {number}
    context: 131072
    max_output: 16384
    supports: [tools, structured_output]
    endpoints:
      - provider: sse
        upstream: model-{number}
        price: {{ input: 1.00, output: 2.00, source: made up, checked: 2026-11-21 }}
      - provider: bedrock
        upstream: model-{number}-v1:0
        price: {{ input: 1.00, output: 2.00, source: made up, checked: 2026-11-21 }}
"""


def bench_catalog_json(upstream_port: int) -> bytes:
    """The compiled catalog whose providers are the mock upstream."""
    text = _ROUTING.read_text().replace("UPSTREAM", f"http://127.0.0.1:{upstream_port}")
    with tempfile.TemporaryDirectory() as folder:
        routing = Path(folder) / "routing.yaml"
        routing.write_text(text)
        return compile_catalog(routing).content


def large_routing(folder: Path, models: int) -> Path:
    """A routing file with so many models of two endpoints each."""
    text = _ROUTING.read_text().replace("UPSTREAM", "https://upstream.example")
    added = [
        _MODEL.format(author=f"author-{number % 20}", number=number) for number in range(models)
    ]
    routing = folder / "routing.yaml"
    routing.write_text(text + "".join(added))
    return routing
