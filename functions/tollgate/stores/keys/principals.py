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
from tollgate.stores.aws.items import KeyRow, SecretItem


@reads_an_item
def principal_of(row: Item) -> Principal:
    """Who a secret belongs to."""
    return Principal(
        key_id=read_text(row, SecretItem.KEY),
        workspace_id=read_text(row, SecretItem.WORKSPACE),
        role=role_of(row),
        label=read_text(row, SecretItem.LABEL),
        tier=read_optional_text(row, SecretItem.TIER),
        models=read_texts(row, SecretItem.MODELS),
        shards=read_number(row, SecretItem.SHARDS),
        labels=labels_of(row),
        # Only workspaces write it, and they take no other.
        admission=cast(Admission | None, read_optional_text(row, SecretItem.ADMISSION)),
        old_secret=SecretItem.GRACE_ENDS in row,
        content_days=read_optional_number(row, SecretItem.CONTENT_DAYS),
    )


@reads_an_item
def refused_from_s(row: Item) -> int | None:
    """The second from which a secret is refused: its key's expiry, or the end of its grace."""
    ends = [
        end
        for name in (SecretItem.EXPIRES, SecretItem.GRACE_ENDS)
        if (end := read_optional_number(row, name)) is not None
    ]
    return min(ends, default=None)


@reads_an_item
def labels_of(row: Item) -> dict[str, str]:
    """A key's labels, from either of its rows."""
    return (
        {name: value["S"] for name, value in row[KeyRow.LABELS]["M"].items()}
        if KeyRow.LABELS in row
        else {}
    )


@reads_an_item
def role_of(row: Item) -> KeyRole:
    """A key's role, from either of its rows."""
    # Only `create` writes roles, and NewKey allows no other.
    return cast(KeyRole, read_text(row, KeyRow.ROLE))
