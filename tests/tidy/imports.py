"""Rules on import cycles and on imports within functions.

Cycles are found through all imports, including those within functions and for types, and through
dotted names. The files of a cycle cannot be read or moved alone.
"""

from collections.abc import Iterable, Iterator, Mapping

from tests.tidy.source import Finding, Rule, Source

# A ratchet: lower this with each import that moves to the top or becomes a dotted name.
DEFERRED_MAX = 33


def files_form_no_circle(sources: Iterable[Source]) -> Iterator[Finding]:
    """Yield each import cycle once, at the alphabetically first of its files."""
    product = {source.module: source for source in sources if source.path.parts[0] == "functions"}
    uses = {name: _used_modules(source, product) for name, source in product.items()}
    for circle in _circles(uses):
        first, *others = sorted(circle)
        yield product[first].finding(1, f"a circle of imports with {', '.join(others)}")


def deferred_imports_have_a_reason(source: Source) -> Iterator[Finding]:
    """Yield each import within a function that has no explaining comment above."""
    if source.path.parts[0] != "functions":
        return
    lines = source.text.splitlines()
    for line in deferred_lines(source):
        before = lines[line - 2].strip()
        if not before.startswith(("#", "from ", "import ")):
            yield source.finding(
                line, "import it at the top, name it by DottedName, or say why not"
            )


def deferred_lines(source: Source) -> list[int]:
    """Return the line of each import statement within a function."""
    return sorted({found.line for found in source.imports if found.is_deferred})


def _used_modules(source: Source, product: Mapping[str, Source]) -> set[str]:
    names = [*(found.name for found in source.imports), *(name for name, _ in source.dotted_names)]
    found = (_module_of(name.replace(":", "."), product) for name in names)
    return {name for name in found if name is not None and name != source.module}


def _module_of(name: str, product: Mapping[str, Source]) -> str | None:
    """Return the module of a dotted name: the name itself, or the module that defines it."""
    while name and name not in product:
        name = name.rpartition(".")[0]
    return name or None


def _circles(uses: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Yield the sets of modules that reach each other (Tarjan's strongly connected components)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []

    def visit(name: str) -> Iterator[set[str]]:
        numbers[name] = lowest[name] = len(numbers)
        open_.append(name)
        for used in sorted(uses[name]):
            if used not in numbers:
                yield from visit(used)
                lowest[name] = min(lowest[name], lowest[used])
            elif used in open_:
                lowest[name] = min(lowest[name], numbers[used])
        if lowest[name] == numbers[name]:
            place = open_.index(name)
            circle = {*open_[place:]}
            del open_[place:]
            if len(circle) > 1:
                yield circle

    for name in sorted(uses):
        if name not in numbers:
            yield from visit(name)


RULES: tuple[Rule, ...] = (deferred_imports_have_a_reason,)
