"""The items of sessions, which last through renewals: encoding and decoding."""

from tollgate.aws.attributes import Item, number, string
from tollgate.stores.aws.decoding import read_number, read_text, reads_an_item
from tollgate.stores.aws.expressions import SIGN_IN_RENEW
from tollgate.stores.aws.items import SignInItem
from tollgate.stores.ports.people import Session


def new_sign_in(
    key: Item, *, round_: int, now_s: int, ends_s: int, renewable: bool, origin: str | None
) -> Item:
    """Return the item of a session that is opened now."""
    item: Item = {
        **key,
        SignInItem.ROUND: number(round_),
        SignInItem.OPENED: number(now_s),
        SignInItem.RENEWED: number(now_s),
        SignInItem.EXPIRES: number(ends_s),
        SignInItem.DELETE_AT: number(ends_s),
        SignInItem.ORIGIN: string(origin or ""),
    }
    if renewable:
        item[SignInItem.RENEWABLE] = number(1)
    return item


def renewal(table: str, key: Item, *, now_s: int, ends_s: int, origin: str | None) -> object:
    """Return the transaction action that renews a session, if the session has not ended."""
    values: Item = {
        ":now": number(now_s),
        ":ex": number(ends_s),
        ":oa": string(origin or ""),
    }
    names = {"#ttl": SignInItem.DELETE_AT}
    return {"Update": SIGN_IN_RENEW.build(table, key, values, names)}


def id_of_session(sign_in: Item) -> str:
    """Return a session's id, from the sort key."""
    return read_text(sign_in, SignInItem.SORT).rpartition("#")[2]


@reads_an_item
def read_session(row: Item) -> Session:
    """Return the session in an item."""
    return Session(
        id=id_of_session(row),
        member_id=read_text(row, SignInItem.SORT).split("#")[1],
        opened_s=read_number(row, SignInItem.OPENED),
        renewed_s=read_number(row, SignInItem.RENEWED),
        expires_s=read_number(row, SignInItem.EXPIRES),
        renewable=SignInItem.RENEWABLE in row,
        origin=read_text(row, SignInItem.ORIGIN) or None,
    )
