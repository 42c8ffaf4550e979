"""Shadow runs: requests that another model answers as well, for comparison alone."""

from typing import Final

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.clock import DAY_S
from tollgate.core.jobs import Job

SHADOW_PREFIX: Final = "shadow_"
# Seconds before a run may begin. The content of the original is stored while the run is created.
REST_S: Final = 10
# Seconds after which a run that waited for a worker is dropped.
TOO_LATE_S: Final = 3_600


class ShadowRun(Job, frozen=True, kw_only=True, omit_defaults=True):
    """The stored state of a shadow run, which one worker claims before it calls any provider.

    The state has neither a prompt nor an answer: the worker reads the stored content of the key.
    """

    created_s: float
    is_claimed: bool = False
    shadow_id: str | None = None
    """The id of the shadow's generation, which its worker chooses with the claim."""

    @property
    def generation_id(self) -> str:
        """The generation that the run repeats with another model."""
        return self.id.removeprefix(SHADOW_PREFIX)

    @property
    @override
    def is_ended(self) -> bool:
        return self.is_claimed

    @property
    @override
    def event_type(self) -> None:
        return None

    @property
    @override
    def kept_s(self) -> int:
        return DAY_S


def claim(run: ShadowRun, shadow_id: str) -> ShadowRun | None:
    """Return a run with the claim of a worker; None if another worker has claimed it."""
    return None if run.is_claimed else replace(run, is_claimed=True, shadow_id=shadow_id)
