"""Names of keys in DynamoDB: one item for each name in use, written together with its key.

Keys created before names had to be unique have a name in the pointer but no such item. A new name
is therefore compared with all pointers, and the item decides between concurrent writers.
"""

from tollgate.aws.attributes import Item, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import decode_items, read_text
from tollgate.stores.aws.expressions import IF_ABSENT, SAME_KEY
from tollgate.stores.aws.items import KeyNameItem, KeyPointerItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import Tables, get_item, key_name_key
from tollgate.stores.keys.rows import is_gone, key_of_pointer
from tollgate.stores.rules.key_names import KeyName, refuse_taken_name


class KeyNames:
    """The names of the keys of all workspaces."""

    def __init__(self, client: AwsCaller, tables: Tables) -> None:
        self._client = client
        self._tables = tables

    async def read(self, workspace_id: str) -> tuple[KeyName, ...]:
        """Return the name of every key that a workspace has or ever had, oldest first."""
        pointers = await all_rows(self._client, self._tables.core, f"W#{workspace_id}", "K#")
        names, _ = decode_items(_read_name, pointers)
        return tuple(names)

    async def claim(self, workspace_id: str, label: str, key_id: str) -> object:
        """Return the action that gives a name to a key; raise RequestError if it is taken.

        The action fails if another key takes the name first.
        """
        key = key_name_key(workspace_id, label)
        row = await get_item(self._client, self._tables.core, key)
        refuse_taken_name(await self.read(workspace_id), label)
        put: dict[str, object] = {
            "TableName": self._tables.core,
            "Item": {**key, KeyNameItem.KEY: string(key_id)},
            "ConditionExpression": IF_ABSENT,
        }
        if row is not None:
            # No key has the name: the item is left over from an older version, which did not
            # release names.
            put["ConditionExpression"] = SAME_KEY
            put["ExpressionAttributeValues"] = {":kid": row[KeyNameItem.KEY]}
        return {"Put": put}

    async def release(self, pointer: Item) -> list[object]:
        """Return the action that frees a key's name; no action if another key has the name."""
        if KeyPointerItem.LABEL not in pointer:
            # A corrupt pointer must not prevent the deletion of its key.
            return []
        key = key_name_key(
            read_text(pointer, KeyPointerItem.WORKSPACE), read_text(pointer, KeyPointerItem.LABEL)
        )
        row = await get_item(self._client, self._tables.core, key)
        if row is None or row[KeyNameItem.KEY] != pointer[KeyPointerItem.KEY]:
            return []
        return [
            {
                "Delete": {
                    "TableName": self._tables.core,
                    "Key": key,
                    "ConditionExpression": SAME_KEY,
                    "ExpressionAttributeValues": {":kid": row[KeyNameItem.KEY]},
                }
            }
        ]


def _read_name(pointer: Item) -> KeyName:
    return KeyName(
        key_of_pointer(pointer), read_text(pointer, KeyPointerItem.LABEL), is_gone(pointer)
    )
