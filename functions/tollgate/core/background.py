"""Background responses: requests that a worker answers after their caller has left."""

from typing import Final, Literal

from msgspec import Struct
from typing_extensions import override

from tollgate.core.batches import StepTry
from tollgate.core.clock import DAY_S
from tollgate.core.jobs import Job

RESPONSE_PREFIX: Final = "resp_"
# The label by which the record of a generation names its background response.
RESPONSE_LABEL: Final = "response"
BackgroundStatus = Literal[
    "queued", "in_progress", "completed", "incomplete", "failed", "cancelled"
]
_ENDED: Final = frozenset[BackgroundStatus]({"completed", "incomplete", "failed", "cancelled"})
# Seconds for which one answer may run. A worker on Lambda lives for 15 minutes, and needs the rest
# to settle.
RUN_MAX_S: Final = 840.0
# Seconds after which a response that has found no room under a rate limit fails.
WAIT_MAX_S: Final = 3_600


class BackgroundFailure(Struct, frozen=True, kw_only=True):
    """The reason why a background response failed, as its `error` shows it."""

    code: str
    message: str
    tollgate_code: str


class ProviderRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A response that runs in its provider's background mode."""

    id: str
    """The id of the hold."""
    provider: str
    at_s: float
    """The Unix second just before the request was sent to the provider."""
    path: str
    """The path of the provider's responses, relative to the provider's base URL."""
    response_id: str | None = None
    """The provider's id of the response; None until the provider has confirmed it."""


class BackgroundResponse(Job, frozen=True, kw_only=True, omit_defaults=True):
    """The stored state of a response; `stores/rules/background.py` has its transitions."""

    created_s: int
    days: int
    """Days for which the response is stored from its creation."""
    streams: bool = False
    """True if the events of the answer are stored, so that a caller can resume the stream."""
    status: BackgroundStatus = "queued"
    ended_s: int | None = None
    tries: tuple[StepTry, ...] = ()
    """The last clean try and the tries since."""
    run: ProviderRun | None = None
    """The run at a provider; None if the gateway answers itself, or once the run is settled."""
    generation_id: str | None = None
    """The generation whose answer the response has; None if it has none."""
    failure: BackgroundFailure | None = None

    @property
    def bare_id(self) -> str:
        """The id without its prefix, by which the answer is stored."""
        return self.id.removeprefix(RESPONSE_PREFIX)

    @property
    @override
    def is_ended(self) -> bool:
        # A response that was cancelled during its run has ended only once the run is settled.
        return self.status in _ENDED and self.run is None

    @property
    @override
    def hold_ids(self) -> frozenset[str]:
        return frozenset() if self.run is None else frozenset({self.run.id})

    @property
    @override
    def event_type(self) -> str:
        return f"response.{self.status}"

    @property
    @override
    def kept_s(self) -> int:
        return self.days * DAY_S
