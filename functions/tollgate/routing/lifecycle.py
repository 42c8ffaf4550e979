"""Days on which models and endpoints end, as routing.yaml states them."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from math import inf
from typing import Final, Literal

from pydantic import Field

from tollgate.core.routing.endpoint_status import ENDLESS, Lifecycle
from tollgate.routing.scalars import Day, ModelSlug, Strict

# Replies and the check announce an end this long before, so that people can move to a successor.
NOTICE: Final = timedelta(days=90)


class EndSection(Strict):
    """Days on which a model ends, or an endpoint that ends before its model."""

    deprecated: Day | None = Field(
        default=None, description="Day from which the provider advises against use."
    )
    retires: Day | None = Field(
        default=None, description="UTC day from whose start no requests are sent."
    )

    @property
    def announced(self) -> date | None:
        """First day on which replies and the check announce the end; None without an end."""
        days = (self.deprecated, self.retires and self.retires - NOTICE)
        return min((day for day in days if day is not None), default=None)


class SuccessionSection(EndSection):
    """Days on which a model begins and ends, and the successor of the model."""

    released: Day | None = Field(
        default=None,
        description="Release day, shown by `/models`; defaults to the earliest `checked`.",
    )
    successor: ModelSlug | None = Field(
        default=None, description="Model to use instead; errors and headers name it."
    )
    after_retirement: Literal["refuse", "successor"] | None = Field(
        default=None,
        description="Whether requests after `retires` are refused (the default) or go to "
        "`successor`.",
    )

    def is_refused_at(self, now_s: float) -> bool:
        """Return True if all requests for the model are refused, whatever its endpoints state."""
        return self.after_retirement != "successor" and _first(self.retires) <= now_s


def make_lifecycle(model: SuccessionSection, endpoint: EndSection) -> Lifecycle:
    """Return the end of an endpoint: the earlier of its days and its model's days."""
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
    """Return the time of the change and the successor, by slug of each model with one."""
    return {
        slug: (_midnight_s(model.retires), model.successor)
        for slug, model in models.items()
        if model.after_retirement == "successor" and model.retires and model.successor
    }


def list_successors(slug: str, models: Mapping[str, SuccessionSection]) -> Iterator[str]:
    """Yield a model's chain of successors, until one repeats or has no successor."""
    met = {slug}
    while (model := models.get(slug)) is not None and model.successor is not None:
        slug = model.successor
        yield slug
        if slug in met:
            return
        met.add(slug)


def list_heirs(slug: str, find: Callable[[str], SuccessionSection | None]) -> Iterator[str]:
    """Yield the models that replace a model after its end, one after the other."""
    met = {slug}
    while (model := find(slug)) is not None and model.after_retirement == "successor":
        if model.successor is None or model.successor in met:
            return
        slug = model.successor
        met.add(slug)
        yield slug


def _first(*days: date | None) -> float:
    return min((_midnight_s(day) for day in days if day is not None), default=inf)


def _midnight_s(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()
