"""Writes the message for a requested name that has no model."""

from collections.abc import Callable

from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import shorten


def describe_unknown(
    catalog: Catalog, name: str, may_show: Callable[[str], bool] = lambda _: True
) -> str:
    """Return the message for an unknown or ambiguous name, or for that of a retired model.

    The message mentions only models that `may_show` allows.
    """
    meaning, shown = catalog.named(name), shorten(name)
    if slugs := [slug for slug in meaning.slugs if may_show(slug)]:
        return f"{shown} could mean {' or '.join(slugs)}; request one of these."
    if meaning.successor is not None and may_show(meaning.successor):
        return f"{shown} is no longer served; use {meaning.successor} instead."
    nearest = [near for near in catalog.nearest(name) if may_show(near)]
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    return f"There is no model, alias or route named {shown}.{hint}"
