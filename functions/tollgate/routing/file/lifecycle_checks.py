"""Checks the end dates of models, and warns if a date is near or has passed."""

from collections.abc import Iterator, Mapping
from datetime import date
from itertools import pairwise

from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.lifecycle import EndSection
from tollgate.routing.schema import ModelSection


def check_lifecycle(
    document: YamlDocument,
    slug: str,
    model: ModelSection,
    *,
    circles: Mapping[str, list[str]],
    today: date | None,
) -> Iterator[Problem]:
    """Yield the problems with the dates and the successor of a model and its endpoints."""
    where: Where = ("models", slug)
    yield from _order(document, where, model, model.released)
    if model.after_retirement == "successor" and not (model.retires and model.successor):
        message = "after_retirement: successor needs retires and successor"
        yield document.at_value((*where, "after_retirement"), "R005", message)
    if slug in circles:
        message = f"successors lead in a circle: {' -> '.join(circles[slug])}"
        yield document.at_value((*where, "successor"), "R051", message)
    yield from _end(document, where, model, slug, today=today, instead=model.successor)
    for index, endpoint in enumerate(model.endpoints):
        inside: Where = (*where, "endpoints", index)
        yield from _order(document, inside, endpoint, model.released)
        yield from _end(
            document, inside, endpoint, f"{slug} at {endpoint.provider}", today=today, instead=None
        )


def _order(
    document: YamlDocument, where: Where, section: EndSection, released: date | None
) -> Iterator[Problem]:
    days = (
        ("released", released),
        ("deprecated", section.deprecated),
        ("retires", section.retires),
    )
    stated_days = [(name, day) for name, day in days if day is not None]
    for (earlier, first), (later, second) in pairwise(stated_days):
        if second <= first:
            message = f"{later} {second} is not after {earlier} {first}"
            yield document.at_value((*where, later), "R013", message)


def _end(
    document: YamlDocument,
    where: Where,
    section: EndSection,
    subject: str,
    *,
    today: date | None,
    instead: str | None,
) -> Iterator[Problem]:
    if today is None or section.announced is None or today < section.announced:
        return
    hint = f"its successor is {instead}" if instead else ""
    if section.retires is not None and section.retires <= today:
        message = f"{subject} retired on {section.retires}: it receives no requests"
    elif section.retires is not None:
        left = (section.retires - today).days
        message = f"{subject} retires on {section.retires}, in {left} day{'' if left == 1 else 's'}"
    else:
        message = f"{subject} is deprecated since {section.deprecated}"
    place = "retires" if section.retires else "deprecated"
    yield document.at_value((*where, place), "R072", message, severity="warning", hint=hint)
