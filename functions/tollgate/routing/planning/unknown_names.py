"""Message for a requested name that leads to no model."""

from collections.abc import Callable

from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import shorten


def describe_unknown(
    catalog: Catalog, name: str, may_show: Callable[[str], bool] = lambda _: True
) -> str:
    """Return the message for a name that stands for no model, or for more than one.

    The message names only models that `may_show` allows.
    """
    named, shown = catalog.named(name), shorten(name)
    if meanings := [slug for slug in named.slugs if may_show(slug)]:
        return f"{shown} could mean {' or '.join(meanings)}; request one of these."
    if named.successor is not None and may_show(named.successor):
        return f"{shown} is not served any more; use {named.successor} instead."
    nearest = [near for near in catalog.nearest(name) if may_show(near)]
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    return f"There is no model, alias or route named {shown}.{hint}"
