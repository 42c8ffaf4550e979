"""Every stored attribute is named once, in items.py or record_items.py."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import fields

import tollgate.stores
from tests.cells import cells
from tests.dynamodb_grammar import Expression
from tests.unit.stores.aws.test_expression_grammar import CONDITIONS, PROJECTIONS, UPDATES
from tollgate.core.usage import Usage
from tollgate.stores.aws import items, record_items

_STORES = Path(tollgate.stores.__file__).parent
_KINDS = [
    kind
    for module in (items, record_items)
    for kind in vars(module).values()
    if isinstance(kind, type)
]
# What makes an attribute's value, and what reads one.
_MAKERS = {"string", "number", "binary", "texts"}
_READERS = {
    "read_text",
    "read_optional_text",
    "read_number",
    "read_optional_number",
    "read_binary",
    "read_texts",
    "read_numbers_by_name",
}
# Words that are attributes' names too, where they stand for something else: the periods of limits,
# the settings of a key, the fields of an alert, the parameter of an error,
# whose limit a hold keeps to, the actor of an event.
_OTHER_MEANINGS = {
    ("keys/rows.py", "label"),
    ("keys/rows.py", "labels"),
    ("keys/rows.py", "models"),
    ("keys/rows.py", "month"),
    ("keys/rows.py", "tier"),
    ("keys/state_items.py", "month"),
    ("people/levels.py", "id"),
    ("people/members.py", "role"),
    ("money/budgets.py", "id"),
    ("money/budgets.py", "month"),
    ("keys/tiers.py", "tier"),
    ("money/workspaces.py", "id"),
    ("rules/audit_entries.py", "label"),
    ("subjects/standing.py", "id"),
    ("rules/key_settings.py", "tier"),
    ("rules/periods.py", "month"),
    ("rules/webhook_events.py", "id"),
}


def _attributes(kind: type) -> set[str]:
    found: set[str] = set()
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if name.isupper():
                found.update([value] if isinstance(value, str) else value)
    return found


_ALL = {name for kind in _KINDS for name in _attributes(kind)}


def _quoted(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each text that is an attribute's name, or stands where only such a name can stand."""
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Literal"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documented | types:
                if text in _ALL:
                    yield node.lineno, text
            case ast.Call(func=ast.Name(id=reader), args=[_, ast.Constant(value=str(text)), *_]):
                if reader in _READERS:
                    yield node.lineno, text
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    match key, value:
                        case (
                            ast.Constant(value=str(text)),
                            ast.Call(func=ast.Name(id=maker)),
                        ) if maker in _MAKERS and not text.startswith(":"):
                            yield node.lineno, text


@cells(
    "path",
    [
        path
        for path in sorted(_STORES.rglob("*.py"))
        if not path.name.endswith(("items.py", "expressions.py")) or path.name == "state_items.py"
    ],
    ids=lambda path: str(path.relative_to(_STORES)),
)
def test_no_attribute_is_quoted_outside_items_and_expressions(path: Path) -> None:
    name = str(path.relative_to(_STORES))
    found = [
        f"{name}:{line}: {text!r}: use its constant of stores/aws/items.py"
        for line, text in _quoted(ast.parse(path.read_text()))
        if (name, text) not in _OTHER_MEANINGS
    ]
    assert not found, "\n".join(found)


def test_each_other_meaning_is_in_use() -> None:
    used = {
        (name, text)
        for name in {name for name, _ in _OTHER_MEANINGS}
        for _, text in _quoted(ast.parse((_STORES / name).read_text()))
    }
    assert used >= _OTHER_MEANINGS


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('read_number(item, "brandnew")', ["brandnew"]),
        ('item = {"brandnew": number(1)}', ["brandnew"]),
        ('values = {":brandnew": number(1)}', []),
        ('if "gx" in item: pass', ["gx"]),
        ('"""gx"""', []),
        ("x: Literal['gx']", []),
    ],
)
def test_what_counts_as_quoted(text: str, quoted: list[str]) -> None:
    assert [text for _, text in _quoted(ast.parse(text))] == quoted


def _kind_of(expression: str) -> set[str]:
    """Return the attributes of the kind of item that an expression is for, by its name."""
    kinds: dict[str, type] = {
        "wallet": items.WalletItem,
        "key": items.KeyStateItem,
        "workspace": items.WorkspaceItem,
        "secret": items.SecretItem,
        "alert": items.BudgetAlertItem,
        "claim": items.AnswerClaimItem,
        "a failure": items.CooldownItem,
        "the first failure": items.CooldownItem,
        "a speed": items.SpeedItem,
        "item version": items.ItemVersionItem,
    }
    for beginning, kind in kinds.items():
        if expression.startswith(beginning):
            return _attributes(kind)
    return _ALL


@cells("name", UPDATES)
def test_an_update_names_only_attributes_of_its_kind_of_item(name: str) -> None:
    write = UPDATES[name]
    used = [*Expression(write.update).update().paths]
    used += Expression(write.condition).condition().paths
    assert _plain(used) <= _kind_of(name)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_names_only_attributes(condition: str) -> None:
    assert _plain(Expression(condition).condition().paths) <= _ALL


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_a_projection_names_only_attributes(projection: str) -> None:
    assert _plain(Expression(projection).projection().paths) <= _ALL


def _plain(paths: list[str]) -> set[str]:
    """Return the attributes that paths begin with, apart from aliases, which stores fill in."""
    return {path.partition(".")[0] for path in paths if not path.startswith("#")}


@cells("kind", _KINDS, ids=lambda kind: kind.__name__)
def test_no_two_attributes_of_an_item_have_one_name(kind: type) -> None:
    names = [
        value
        for base in kind.__mro__
        for name, value in vars(base).items()
        if name.isupper() and isinstance(value, str)
    ]
    assert len(names) == len(set(names))


def test_every_class_of_usage_is_stored_with_a_day() -> None:
    stored = list(record_items.ActivityItem.USAGE.values())
    assert sorted(stored) == sorted(field.name for field in fields(Usage))
