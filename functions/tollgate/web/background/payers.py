"""The keys that pay for what a provider has run for them."""

from msgspec.structs import replace

from tollgate.core.errors import AccessError
from tollgate.core.jobs import Job
from tollgate.core.principal import Principal
from tollgate.engine.batches.provider_answers import without_rules
from tollgate.stores.ports.base import KeyDirectory


async def find_payer(
    keys: KeyDirectory, job: Job, *, has_run: bool, days: int | None = None
) -> Principal:
    """Return the principal of a job's key; raise AccessError if the key is refused.

    A key pays for what a provider has run, even if the key was disabled, deleted or changed since.
    `days` is the time for which its responses are stored.
    """
    if not has_run:
        return await keys.find_key(job.workspace_id, job.key_id)
    try:
        principal = await keys.find_key(job.workspace_id, job.key_id)
    except AccessError:
        principal = Principal(
            key_id=job.key_id, workspace_id=job.workspace_id, role="inference", label=""
        )
    return replace(without_rules(principal), response_days=days)
