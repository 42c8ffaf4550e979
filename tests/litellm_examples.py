"""The sums of docs/migrating.md: what twelve example configs in LiteLLM's wheel become.

    python -m tests.litellm_examples litellm-*.whl

`tests/unit/cli/catalog/test_import_examples.py` has configs of the same shapes.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from tollgate.cli.catalog.import_config import render_routing
from tollgate.cli.catalog.litellm_config import ImportNote, read_litellm_config
from tollgate.cli.catalog.litellm_endpoints import Placement
from tollgate.cli.catalog.litellm_import import import_litellm
from tollgate.cli.catalog.litellm_replay import ReplayedName, replay_names
from tollgate.cli.catalog.price_map import read_price_map
from tollgate.cli.options import utc_today
from tollgate.core.clock import SystemClock
from tollgate.routing.file.compile import compile_routing
from tollgate.routing.file.load import inspect, load
from tollgate.routing.planning.catalog import Catalog

_FOLDER = "litellm/proxy"
_CONFIGS = (
    *("dev_config", "proxy_config", "wildcard_config"),
    *("example_config_yaml/adaptive_router_example", "example_config_yaml/aliases_config"),
    *("example_config_yaml/azure_config", "example_config_yaml/load_balancer"),
    *("example_config_yaml/oai_misc_config", "example_config_yaml/otel_test_config"),
    *("example_config_yaml/pass_through_config", "example_config_yaml/test_pipeline_config"),
    "example_config_yaml/websearch_interception_config",
)
_SHAPES = ("plain", "tools", "image", "long")
_ADDRESSES = {
    "AZURE_AI_API_BASE": "https://acme.services.ai.azure.com",
    "FAKE_OPENAI_API_BASE": "https://llm.acme.example/v1",
}


def main(wheel: Path) -> None:
    placement = Placement(
        load(Path("routing.yaml")),
        utc_today(),
        price_map=read_price_map(wheel),
        addresses=_ADDRESSES,
    )
    print(f"| config | models | names | {' | '.join(_SHAPES)} | in red |")
    print("|---|---|---|" + "---|" * (len(_SHAPES) + 1))
    with TemporaryDirectory() as folder, ZipFile(wheel) as archive:
        for config in _CONFIGS:
            print(_row(Path(archive.extract(f"{_FOLDER}/{config}.yaml", folder)), placement))


def _row(config: Path, placement: Placement) -> str:
    imported = import_litellm(read_litellm_config(config), placement)
    result = config.with_suffix(".routing.yaml")
    result.write_text(render_routing(imported, config))
    routing = inspect(result, dev=True).routing
    assert routing is not None, config
    catalog = Catalog.from_json(compile_routing(routing).content)
    replayed = list(replay_names(catalog, imported.sources, SystemClock().now_s()))
    cells = [str(len(routing.models)), str(len({each.name for each in replayed}))]
    cells += _kept(replayed)
    cells.append(", ".join(_works(imported.notes)))
    return f"| `{config.stem}` | {' | '.join(cells)} |"


def _kept(replayed: Iterable[ReplayedName]) -> Iterator[str]:
    """Yield for each request how many names of chat models serve it as before."""
    results = [(shape, each.changed) for each in replayed for shape in each.shapes]
    for shape in _SHAPES:
        all_names = [changed for name, changed in results if name == shape]
        yield f"{all_names.count('')}/{len(all_names)}"


def _works(notes: Iterable[ImportNote]) -> Iterator[str]:
    """Yield each section that notes in red name, with the number of these notes."""
    sections = Counter(each.where.partition(" ")[0] for each in notes if each.is_loss)
    for section, count in sections.items():
        yield f"`{section}`" if count == 1 else f"`{section}` × {count}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
