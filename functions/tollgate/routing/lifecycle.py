"""The days in routing.yaml on which models and endpoints end."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from math import inf
from typing import Final, Literal

from tollgate.core.routing.endpoint_status import ENDLESS, Lifecycle
from tollgate.routing.scalars import Day, ModelSlug, Strict, midnight_s

# The time before an end during which replies and `tollgate check` announce it.
NOTICE: Final = timedelta(days=90)


class EndSection(Strict):
    """Days on which a model or an endpoint ends; an endpoint may end before its model does."""

    deprecated: Day | None = None
    """Day from which the provider advises against using it."""
    retires: Day | None = None
    """UTC day from which no more requests are sent."""

    @property
    def announced(self) -> date | None:
        """First day on which the end is announced; None if there is no end."""
        days = (self.deprecated, self.retires and self.retires - NOTICE)
        return min((day for day in days if day is not None), default=None)


class SuccessionSection(EndSection):
    """First and last days of a model, and its successor."""

    released: Day | None = None
    """Release day as shown by `/models`; defaults to the earliest `checked`."""
    successor: ModelSlug | None = None
    """Model to use instead, which errors and headers name."""
    after_retirement: Literal["refuse", "successor"] | None = None
    """Treatment of requests from `retires` on: refused (the default), or sent to `successor`."""

    def is_refused_at(self, now_s: float) -> bool:
        """Return True if the model has retired and no successor replaces it."""
        return self.after_retirement != "successor" and _first(self.retires) <= now_s


def make_lifecycle(model: SuccessionSection, endpoint: EndSection) -> Lifecycle:
    """Return the lifecycle of an endpoint; each day is the earlier of the endpoint's own and its
    model's.
    """
    notice = _first(model.announced, endpoint.announced)
    if notice == inf:
        return ENDLESS
    return Lifecycle(
        notice_s=notice,
        deprecated_s=_first(model.deprecated, endpoint.deprecated),
        retires_s=_first(model.retires, endpoint.retires),
        successor=model.successor,
    )


def list_redirects(models: Mapping[str, SuccessionSection]) -> dict[str, tuple[float, str]]:
    """Return the time of the switch and the successor of each model that is replaced, keyed by
    slug.
    """
    return {
        slug: (midnight_s(model.retires), model.successor)
        for slug, model in models.items()
        if model.after_retirement == "successor" and model.retires and model.successor
    }


def list_heirs(slug: str, find: Callable[[str], SuccessionSection | None]) -> Iterator[str]:
    """Yield the models that replace a model, one after another, as each retires."""
    seen = {slug}
    while (model := find(slug)) is not None and model.after_retirement == "successor":
        if model.successor is None or model.successor in seen:
            return
        slug = model.successor
        seen.add(slug)
        yield slug


def _first(*days: date | None) -> float:
    return min((midnight_s(day) for day in days if day is not None), default=inf)
