"""Rules on sizes, vague names, and forbidden phrases."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.layers import part_of
from tests.tidy.source import Finding, Rule, Source

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
POSITIONAL_PARAMETERS_MAX = 4

_VAGUE = {"util", "utils", "helper", "helpers", "manager", "data", "info"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_UNFINISHED = re.compile(r"\b(TODO|FIXME)\b")
_PLAIN_VALUES_ONLY = {
    "core",
    "engine",
    "routing",
    "routing.file",
    "routing.planning",
    "routing.review",
    "stores.rules",
}

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def files_are_short(source: Source) -> Iterator[Finding]:
    lines = len(source.text.splitlines())
    if lines > FILE_LINES_MAX:
        yield source.finding(lines, f"{lines} lines; a file has at most {FILE_LINES_MAX}")


def functions_are_short(source: Source) -> Iterator[Finding]:
    for node in _functions(source):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield source.finding(
                node.lineno,
                f"{node.name} has {lines} lines; a function has at most {FUNCTION_LINES_MAX}",
            )


def parameters_past_the_fourth_are_named(source: Source) -> Iterator[Finding]:
    # pytest passes parameters by name, as many as the table of a test has columns.
    if source.path.parts[0] == "tests":
        return
    methods = {
        child
        for node in source.nodes(ast.ClassDef)
        for child in node.body
        if isinstance(child, _Function) and not _is_static(child)
    }
    for node in _functions(source):
        count = len(node.args.posonlyargs) + len(node.args.args) - (node in methods)
        if count > POSITIONAL_PARAMETERS_MAX:
            yield source.finding(
                node.lineno,
                f"{node.name} takes {count} positional parameters; at most "
                f"{POSITIONAL_PARAMETERS_MAX}, the others keyword-only",
            )


def names_say_something(source: Source) -> Iterator[Finding]:
    """Yield each module or class with a vague word in its name, and each function named by one."""
    stem = source.module.rpartition(".")[2]
    if _VAGUE & set(_words(stem)):
        yield source.finding(1, f"{stem}: a name that could stand for anything")
    for node in source.nodes(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        if isinstance(node, ast.ClassDef):
            vague = bool(_VAGUE & set(_words(node.name)))
        else:
            vague = node.name.strip("_").lower() in _VAGUE
        if vague:
            yield source.finding(node.lineno, f"{node.name}: a name that could stand for anything")


def values_have_types(source: Source) -> Iterator[Finding]:
    if part_of(source.module) not in _PLAIN_VALUES_ONLY:
        return
    for node in source.nodes(ast.Subscript):
        if _is_dict_of_anything(node):
            yield source.finding(node.lineno, "dict[str, Any]: make it a value with types")


def lookups_are_not_chained(source: Source) -> Iterator[Finding]:
    for node in source.nodes(ast.Call):
        if _is_chained_lookup(node):
            yield source.finding(
                node.lineno, ".get(…, {}).get(…): parse into a model, then use its fields"
            )


def comments_promise_nothing(source: Source) -> Iterator[Finding]:
    for found, line in source.comments(_UNFINISHED):
        yield source.finding(line, f"{found[0]}: do it, or write an issue")


def _functions(source: Source) -> list[_Function]:
    return source.nodes(ast.FunctionDef, ast.AsyncFunctionDef)


def _is_dict_of_anything(node: ast.Subscript) -> bool:
    match node:
        case ast.Subscript(
            value=ast.Name(id="dict" | "Dict") | ast.Attribute(attr="Dict"),
            slice=ast.Tuple(
                elts=[ast.Name(id="str"), ast.Name(id="Any") | ast.Attribute(attr="Any")]
            ),
        ):
            return True
        case _:
            return False


def _is_chained_lookup(node: ast.Call) -> bool:
    match node.func:
        case ast.Attribute(
            attr="get", value=ast.Call(func=ast.Attribute(attr="get"), args=[_, ast.Dict(keys=[])])
        ):
            return True
        case _:
            return False


def _is_static(node: _Function) -> bool:
    return any(
        isinstance(name, ast.Name) and name.id == "staticmethod" for name in node.decorator_list
    )


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


RULES: tuple[Rule, ...] = (
    files_are_short,
    functions_are_short,
    parameters_past_the_fourth_are_named,
    names_say_something,
    values_have_types,
    lookups_are_not_chained,
    comments_promise_nothing,
)
