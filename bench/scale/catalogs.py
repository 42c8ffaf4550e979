"""The part of `make scale` that measures catalogs with many models."""

import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Final

from tests.unit.routing.catalogs import principal, request

from bench.catalog_300 import make_routing
from bench.scale.counted import Cost
from bench.scale.deployments import NOW_S, Template
from bench.scale.measure import Point
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.web.models.model_routes import ModelsReply
from tollgate.web.models.model_shapes import name_object

_MODELS: Final = (30, 100, 300, 1_000, 3_000)
_TIMES: Final = 5


async def measure_catalogs(_template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield the CPU for each number of models; no store is called."""
    for models in _MODELS:
        yield _measure(models)


def _measure(models: int) -> Sequence[Point]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "routing.yaml"
        # The prices of generated models grow with their number.
        file.write_text(make_routing(models).replace("price_max: 40", "price_max: 4000"))
        compiled = _cpu_ms(lambda: compile_catalog(file), times=1)
        content = compile_catalog(file).content
    catalog = Catalog.from_json(content)
    planner = Planner(catalog)
    wanted = PlanningRequest.of(
        request("author-0/model-0"), principal=principal(), request_id="r-1", fallbacks=True
    )

    def list_models() -> bytes:
        names = {name: (name,) for name in catalog.models}
        shown = [name_object(catalog, name, entry, now_s=NOW_S) for name, entry in names.items()]
        return ModelsReply(data=shown).model_dump_json(exclude_none=True).encode()

    found = {
        "compile and check": compiled,
        "load": _cpu_ms(lambda: Catalog.from_json(content)),
        "load what the build checked": _cpu_ms(lambda: Catalog.from_build(content)),
        "first plan": _cpu_ms(lambda: Planner(catalog).plan(wanted, now_s=NOW_S)),
        "next plan": _cpu_ms(lambda: planner.plan(wanted, now_s=NOW_S), times=100),
        "list of models": _cpu_ms(list_models),
    }
    return [_point(name, models, cpu_ms) for name, cpu_ms in found.items()]


def _point(operation: str, size: int, cpu_ms: float) -> Point:
    cost = Cost(calls=0, items=0, read_units=0, write_units=0, cpu_ms=cpu_ms)
    return Point(operation=operation, size=size, cost=cost, memory_mb=None)


def _cpu_ms(work: Callable[[], object], times: int = _TIMES) -> float:
    """Return the lowest CPU time of a few runs, or the mean of many short runs."""
    taken: list[float] = []
    for _ in range(times):
        began_s = process_time()
        work()
        taken.append(process_time() - began_s)
    return (min(taken) if times <= _TIMES else sum(taken) / times) * 1e3
