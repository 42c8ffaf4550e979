"""Whose a secret is, as the row of its hash says."""

from typing import cast

from tollgate.core.principal import Admission, KeyRole, Principal
from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.decoding import (
    read_number,
    read_optional_number,
    read_optional_text,
    read_text,
    read_texts,
    reads_an_item,
)


@reads_an_item
def principal_of(row: Item) -> Principal:
    """Who a secret belongs to."""
    return Principal(
        key_id=read_text(row, "kid"),
        workspace_id=read_text(row, "ws"),
        role=role_of(row),
        label=read_text(row, "label"),
        tier=read_optional_text(row, "tier"),
        models=read_texts(row, "models"),
        shards=read_number(row, "n"),
        labels=labels_of(row),
        # Only workspaces write it, and they take no other.
        admission=cast(Admission | None, read_optional_text(row, "adm")),
        old_secret="gx" in row,
        content_days=read_optional_number(row, "cd"),
    )


@reads_an_item
def refused_from_s(row: Item) -> int | None:
    """The second from which a secret is refused: its key's expiry, or the end of its grace."""
    ends = [end for name in ("ex", "gx") if (end := read_optional_number(row, name)) is not None]
    return min(ends, default=None)


@reads_an_item
def labels_of(row: Item) -> dict[str, str]:
    """A key's labels, from either of its rows."""
    return (
        {name: value["S"] for name, value in row["labels"]["M"].items()} if "labels" in row else {}
    )


@reads_an_item
def role_of(row: Item) -> KeyRole:
    """A key's role, from either of its rows."""
    # Only `create` writes roles, and NewKey allows no other.
    return cast(KeyRole, read_text(row, "role"))
