"""The days on which models and endpoints end, as routing.yaml states them."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from math import inf
from typing import Final, Literal

from pydantic import Field

from tollgate.core.routing.lifecycle import ENDLESS, Lifecycle
from tollgate.routing.scalars import Day, ModelSlug, Strict

# A quarter of a year, in which people can move to a successor: replies and the check announce it.
NOTICE: Final = timedelta(days=90)


class EndSection(Strict):
    """The days on which a model ends, or an endpoint before its model does."""

    deprecated: Day | None = Field(
        default=None, description="Day from which its provider advises against it."
    )
    retires: Day | None = Field(
        default=None, description="UTC day from whose first second on no request is sent."
    )

    @property
    def announced(self) -> date | None:
        """The first day on which replies and the check announce the end; None without an end."""
        days = (self.deprecated, self.retires and self.retires - NOTICE)
        return min((day for day in days if day is not None), default=None)


class SuccessionSection(EndSection):
    """The days on which a model begins and ends, and the model that comes after it."""

    released: Day | None = Field(
        default=None,
        description="Day of its release, which `/models` shows; by default the first `checked`.",
    )
    successor: ModelSlug | None = Field(
        default=None, description="Model to use instead, which errors and headers name."
    )
    after_retirement: Literal["refuse", "successor"] | None = Field(
        default=None,
        description="Whether a request after `retires` is refused, the default, or goes to "
        "`successor`.",
    )

    def is_refused_at(self, now_s: float) -> bool:
        """Return True if a request for it is refused, whatever its endpoints are."""
        return self.after_retirement != "successor" and _first(self.retires) <= now_s


def make_lifecycle(model: SuccessionSection, endpoint: EndSection) -> Lifecycle:
    """Return the end of an endpoint: its own days, or those of its model if they are earlier."""
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
    """Return the models that hand on to a successor: from when, and its slug."""
    return {
        slug: (_midnight_s(model.retires), model.successor)
        for slug, model in models.items()
        if model.after_retirement == "successor" and model.retires and model.successor
    }


def list_successors(slug: str, models: Mapping[str, SuccessionSection]) -> Iterator[str]:
    """Yield a model's successor, the successor of that, and so on, until one repeats or ends."""
    met = {slug}
    while (model := models.get(slug)) is not None and model.successor is not None:
        slug = model.successor
        yield slug
        if slug in met:
            return
        met.add(slug)


def list_heirs(slug: str, find: Callable[[str], SuccessionSection | None]) -> Iterator[str]:
    """Yield the model that takes a model's place on its end, the one after that, and so on."""
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
