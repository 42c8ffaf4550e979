"""DynamoDB transactions, which apply all of their writes or none, and the actions in them.

A function that only serves generations does not use transactions and does not import this module.
"""

from collections.abc import Iterable

from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.ids import IdSource
from tollgate.stores.aws.expressions import IF_ABSENT


def put_if_absent(table: str, item: Item) -> object:
    """Return the action that puts an item unless an item with its key exists."""
    return {"Put": {"TableName": table, "Item": item, "ConditionExpression": IF_ABSENT}}


async def transact(client: AwsCaller, ids: IdSource, actions: Iterable[object]) -> None:
    """Apply all actions; if one fails, apply none and raise TransactionCancelled."""
    await client.call(
        "TransactWriteItems",
        # The token makes the call idempotent, so the client may retry it after a lost reply.
        {"ClientRequestToken": ids.new_id(), "TransactItems": list(actions)},
    )
