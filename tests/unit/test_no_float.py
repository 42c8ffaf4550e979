"""C65: no float comes near money, anywhere between a price and a ledger."""

import ast
from pathlib import Path

import pytest

import tollgate
from tests.cells import cells

ROOT = Path(tollgate.__file__).parent
# Nothing but money in these: not even the word.
PURE = (
    "core/money/amounts.py",
    "core/usage.py",
    "core/records/generation.py",
    "core/records/activity.py",
)
# Time is a float in these, and may be: only as a limit or a moment, never as a factor.
MIXED = (
    "engine/meter.py",
    "routing/price.py",
    "stores/records/activity.py",
    "aws/attributes.py",
    "stores/money/credits.py",
    "stores/records/generations.py",
    "stores/aws/holds.py",
    "stores/keys/*.py",
    "stores/money/ledger.py",
    "stores/money/wallets.py",
    "stores/rules/*.py",
    "../../tests/memory/*.py",
)
TIME = ("_s", "_S", "_ms", "_us")


def modules(patterns: tuple[str, ...]) -> list[Path]:
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert len(found) >= len(patterns)
    return sorted(found)


def is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def floats(tree: ast.AST) -> list[ast.AST]:
    """Where a float is made: written, converted to, or divided into."""
    return [
        node
        for node in ast.walk(tree)
        if is_float(node)
        or (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div))
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "float"
        )
    ]


def limits_of_time(tree: ast.AST) -> set[ast.AST]:
    """The float literals of statements that name a time, and what these divide."""
    named: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.With | ast.AsyncWith
        ):
            names = {
                getattr(inner, "id", None)
                or getattr(inner, "attr", None)
                or getattr(inner, "arg", None)
                for inner in ast.walk(node)
            }
            about_money = any("usd" in (name or "") or "cost" in (name or "") for name in names)
            if not about_money and any((name or "").endswith(TIME) for name in names):
                named.update(ast.walk(node))
    return named


@pytest.mark.parametrize("path", modules(PURE), ids=lambda path: path.stem)
def test_c65_values_of_money_have_no_float(path: Path) -> None:
    tree = ast.parse(path.read_text())
    words = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "float"]
    assert not floats(tree) + words


@cells("path", modules(MIXED), ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_c65_on_the_way_of_money_a_float_is_a_time(path: Path) -> None:
    tree = ast.parse(path.read_text())
    allowed = limits_of_time(tree)
    found = [ast.unparse(node) for node in floats(tree) if node not in allowed]
    assert not found


@pytest.mark.parametrize(
    "source", ["cost = 0.1 * n", "x = float(cost)", "cost_nano_usd = a / b", "d_s = usd * 0.5"]
)
def test_a_float_on_the_way_of_money_is_seen(source: str) -> None:
    tree = ast.parse(source)
    assert [node for node in floats(tree) if node not in limits_of_time(tree)]
