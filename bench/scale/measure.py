"""Measurement of gateway operations on deployments of growing size."""

import gc
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct
from tests.stores import DynamoStores

from bench.scale.counted import Cost, CountedStore

Operation = Callable[[DynamoStores], Awaitable[object]]


class Point(Struct, frozen=True, kw_only=True):
    """The cost of an operation at one size."""

    operation: str
    size: int
    cost: Cost
    memory_mb: float | None
    """Peak memory allocated by Python for the operation; None if not measured."""


async def measure_operations(
    operations: Mapping[str, Operation],
    *,
    size: int,
    counted: CountedStore,
    stores: Callable[[], DynamoStores],
    memory: bool,
) -> Sequence[Point]:
    """Measure each operation on stores whose caches are empty.

    Memory is measured in a second run, because tracing slows down the run.
    """
    points: list[Point] = []
    for name, operation in operations.items():
        fresh = stores()
        gc.collect()
        counted.measured()
        await operation(fresh)
        cost = counted.measured()
        points.append(
            Point(
                operation=name,
                size=size,
                cost=cost,
                memory_mb=await _memory_mb(operation, stores()) if memory else None,
            )
        )
    return points


async def _memory_mb(operation: Operation, stores: DynamoStores) -> float:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        await operation(stores)
        return (tracemalloc.get_traced_memory()[1] - before) / 1e6
    finally:
        tracemalloc.stop()
