"""Lambda entry point of the workers of jobs, invoked by the messages of two queues.

A message names a job that has work to do: a batch, a background response, a shadow run or a video.
The worker tries steps of the job until its time is nearly over, and then sends another message for
the rest. All jobs except batches share a queue, and so never wait for lines of a batch.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from math import ceil
from typing import Final, Protocol, TypedDict

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from tollgate.core.background import RESPONSE_PREFIX
from tollgate.core.clock import Deadline, SystemClock
from tollgate.core.shadows import SHADOW_PREFIX
from tollgate.core.videos import VIDEO_PREFIX
from tollgate.engine.batches.worker import BatchWorker
from tollgate.engine.gateway import Gateway
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.stores.ports.batches import BatchPlace
from tollgate.web.background.running import BackgroundWorker
from tollgate.web.shadows.running import ShadowWorker
from tollgate.web.videos.working import VideoWorker
from tollgate.wiring.background import wire_background_queue
from tollgate.wiring.background_workers import wire_background_worker
from tollgate.wiring.batch_stores import read_message, wire_batch_queue
from tollgate.wiring.batches import wire_batch_worker
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.files import wire_files
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.item_versions import check_store
from tollgate.wiring.observation import wire_observation
from tollgate.wiring.shadow_workers import wire_shadow_worker
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.video_workers import wire_video_worker

# Reserved for settling what runs, and for sending the next message.
_RESERVE_S: Final = 30.0
_DELAY_MAX_S: Final = 900
# The metric that counts the steps of each worker.
_STEPS: Final = {
    BatchWorker: "BatchSteps",
    BackgroundWorker: "BackgroundSteps",
    ShadowWorker: "ShadowSteps",
    VideoWorker: "VideoSteps",
}

configure_logging()
_settings = Settings()
_metrics = Metrics(namespace=_settings.metrics_namespace, service="batch")


class Message(TypedDict):
    """A message as Lambda passes it on."""

    body: str


class Context(Protocol):
    """The facts about an invocation that Lambda passes on."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the function is stopped."""


def handler(event: Mapping[str, Sequence[Message]], context: Context) -> None:
    """Run the job that each message names."""
    for message in event["Records"]:
        left_s = context.get_remaining_time_in_millis() / 1_000 - _RESERVE_S
        asyncio.run(_work(read_message(message["body"]), left_s))


async def _work(place: BatchPlace, left_s: float) -> None:
    """Run steps of a job, and send a message for the rest if any step was run.

    If this worker ran no step, another worker has all of them, and sends that message itself.
    """
    clock = SystemClock()
    observation = wire_observation(_settings, clock)
    stores, upstream = wire_stores(_settings, clock), wire_upstream(_settings, clock)
    async with AsyncExitStack() as stack:
        for closed_last in (observation, stores, upstream):
            await stack.enter_async_context(aclosing(closed_last))
        # Nobody waits, so the read costs no time of a caller; the queue keeps a refused message.
        await check_store(stores)
        is_response = place.batch_id.startswith(RESPONSE_PREFIX)
        is_shadow = place.batch_id.startswith(SHADOW_PREFIX)
        is_video = place.batch_id.startswith(VIDEO_PREFIX)
        is_batch = not (is_response or is_shadow or is_video)
        wire_queue = wire_batch_queue if is_batch else wire_background_queue
        files, queue = wire_files(_settings, stores, clock), wire_queue(_settings, clock)
        if files is None or queue is None:
            raise RuntimeError("jobs need a bucket and a queue")
        await stack.enter_async_context(aclosing(files))
        await stack.enter_async_context(aclosing(queue))

        def gateway(catalog: Catalog) -> Gateway:
            return wire_gateway(
                stores, upstream, catalog, clock=clock, journal=observation.journal, reader=None
            )

        gateways = wire_catalog_follower(
            _settings,
            stores.publications,
            gateway,
            as_candidate=Gateway.as_candidate,
            clock=clock,
            journal=observation.journal,
        )
        worker: BatchWorker | BackgroundWorker | ShadowWorker | VideoWorker | None
        if is_batch:
            worker = wire_batch_worker(_settings, stores, files, gateways, clock=clock)
        elif is_video:
            worker = wire_video_worker(
                _settings, stores, files, gateways, clock=clock, journal=observation.journal
            )
        else:
            wire_worker = wire_shadow_worker if is_shadow else wire_background_worker
            worker = wire_worker(
                _settings, stores, gateways, clock=clock, journal=observation.journal
            )
        if worker is None:
            return
        wait_s = await worker.work(place, Deadline.within(clock, left_s))
        _metrics.add_metric(_STEPS[type(worker)], MetricUnit.Count, worker.steps)
        _metrics.flush_metrics()
        if wait_s is not None and worker.steps:
            await queue.send(place, delay_s=min(ceil(wait_s), _DELAY_MAX_S))
