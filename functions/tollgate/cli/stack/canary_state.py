"""Describes the state of a canary that has terms."""

from collections.abc import Iterator, Sequence

from tollgate.core.routing.canary import LOOK_TIMES_S, Look
from tollgate.core.routing.publication import Publication
from tollgate.web.http.csv_columns import cell_text
from tollgate.web.shapes import moment


def is_of(look: Look | None, publication: Publication) -> bool:
    """Return whether a look was at the candidate of a publication."""
    return look is not None and look.revision == publication.revision


def describe_canary(history: Sequence[Publication], look: Look | None) -> Iterator[str]:
    """Yield lines on the latest publication's canary, or on the one that it withdrew."""
    latest = history[0] if history else None
    if latest is None:
        return
    if latest.withdrawn is not None:
        withdrawn = history[1].candidate if len(history) > 1 else None
        yield f"The canary {(withdrawn or '')[:12]} was withdrawn: {latest.withdrawn}."
    elif latest.terms is not None:
        yield f"The sweeper withdraws the canary if it breaks a term: {latest.terms.describe()}."
    else:
        return
    if look is None or not any(is_of(look, each) for each in history[:2]):
        yield "The first look is 10 minutes after the publication."
        return
    yield (
        f"Look {look.number} of {len(LOOK_TIMES_S)}, {cell_text(moment(look.at_s))}: "
        f"{look.requests} requests of {look.keys} keys; with the live catalog {look.live_requests}"
        f" requests of {look.live_keys} keys."
    )
    yield f"  {look.describe()}"
    match look.state:
        case "no_traffic":
            yield "  One of the catalogs served no requests, so nothing can be compared."
        case "too_few_keys":
            yield "  With so few keys, any difference may be chance: raise the share."
        case "kept":
            yield "  No term is broken so far."
        case "broken":
            pass
