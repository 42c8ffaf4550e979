"""Rules on which modules may import which, and on the environment, clock and randomness."""

from collections.abc import Iterator
from functools import cache

from tests.tidy.source import Finding, Rule, Source

# Folders that implement protocols; only wiring may import from these.
_IMPLEMENTATIONS = ("providers", "reading", "stores", "tools")
# Lowest layer first. A module may import from its own line and from the lines above, never from
# lines below. A folder includes its subfolders, except those with a line of their own.
LAYERS = (
    ("core",),
    ("http1",),
    ("aws",),
    (
        "ingress",
        "providers.ports",
        "providers.shared",
        "stores.ports",
        "stores.rules",
        "tools.ports",
    ),
    ("routing",),
    ("routing.planning",),
    ("sign_in",),
    _IMPLEMENTATIONS,
    ("engine",),
    ("routing.file",),
    ("routing.review",),
    ("settings",),
    ("web", "lambda_runtime", "observability"),
    ("wiring",),
    ("installation",),
    ("cli", "functions"),
)
_RANK = {folder: rank for rank, line in enumerate(LAYERS) for folder in line}
# Files next to the package that are the entry points of functions.
_ENTRIES = {"api", "batch", "chat", "reader", "rollup", "sign_in", "sweeper"}
# Tool engines are called over the connections to providers, and the simulator is built with the
# same services as all transports.
_CARRIED = {
    ("tools", "providers.transports"),
    ("providers.simulator", "providers.transports"),
}

# Packages that only certain parts of the project may import.
HOMES = {
    "aiohttp": (),
    "boto3": ("cli",),
    "docx": ("reading",),
    "cryptography": ("ingress", "sign_in", "stores.webhooks"),
    "fastapi": ("web",),
    "httptools": ("http1",),
    "joserfc": ("sign_in",),
    "lxml": ("reading",),
    "mangum": ("functions.api", "functions.sign_in", "lambda_runtime"),
    "openpyxl": ("reading",),
    "pydantic_settings": ("settings",),
    "pypdfium2": ("reading",),
    "python_multipart": ("ingress",),
    "tinytag": ("ingress",),
    "trafilatura": ("reading",),
    "yarl": ("http1",),
}

_ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.putenv"}
_CHANCE_MODULES = {"random", "secrets"}
# Functions of `time` that only convert a given moment, without reading a clock.
_TIME_FORMATS = {"time", "time.gmtime", "time.strftime", "time.strptime", "time.struct_time"}
_TIME_AND_CHANCE = {
    "asyncio.sleep",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "os.urandom",
    "uuid.uuid1",
    "uuid.uuid4",
}
_TIME_AND_CHANCE_HOMES = {"tollgate.core.clock", "tollgate.core.ids", "tollgate.wiring.generation"}


@cache
def part_of(name: str) -> str | None:
    """Return the layer's folder that contains a dotted name; None if the name is not ours.

    For a folder without a layer, return its first component.
    """
    place = _place_of(name)
    if place is None:
        return None
    words = place.split(".")
    folders = (".".join(words[:end]) for end in range(len(words), 0, -1))
    return next((folder for folder in folders if folder in _RANK), words[0])


def _place_of(name: str) -> str | None:
    """Return a dotted name below `tollgate`; a file next to the package is in `functions`."""
    match name.split("."):
        case ["tollgate"]:
            return "core"
        case ["tollgate", "__main__", *_]:
            return "cli"
        case ["tollgate", *words]:
            return ".".join(words)
        case [entry, *_] if entry in _ENTRIES:
            return f"functions.{entry}"
        case _:
            return None


def _lies_in(place: str, folder: str) -> bool:
    return f"{place}.".startswith(f"{folder}.")


def _implementation_of(name: str) -> str | None:
    """Return the implementation, such as a codec, that contains a dotted name; else None."""
    if part_of(name) not in _IMPLEMENTATIONS:
        return None
    words = (_place_of(name) or "").split(".")
    depth = 1 if words[0] != "providers" else 3 if words[1:2] == ["codecs"] else 2
    return ".".join(words[:depth])


def imports_run_one_way(source: Source) -> Iterator[Finding]:
    part = part_of(source.module)
    if part is None:
        return
    rank = _RANK.get(part)
    if rank is None:
        yield source.finding(1, f"{part} is in no layer: give it a place in tests/tidy/layers.py")
        return
    for found in source.imports:
        target = part_of(found.name)
        target_rank = None if target is None else _RANK.get(target)
        if target_rank is not None and target_rank > rank:
            yield source.finding(found.line, f"{part} lies below {target} and may not import it")
    for name, line in source.dotted_names:
        target = part_of(name.partition(":")[0])
        target_rank = None if target is None else _RANK.get(target)
        # The table of formats is below the codecs that it names, but in the same folder.
        if target_rank is not None and target_rank > rank and not _share_folder(part, target):
            yield source.finding(line, f"{part} lies below {target} and may not name its objects")


def implementations_are_imported_by_wiring_alone(source: Source) -> Iterator[Finding]:
    if part_of(source.module) in {None, "wiring"}:
        return
    own = _implementation_of(source.module)
    for found in source.imports:
        target = _implementation_of(found.name)
        if target not in {None, own} and (own, target) not in _CARRIED:
            yield source.finding(
                found.line,
                f"{source.module} may not import {target}: only wiring knows implementations",
            )
    for name, line in source.dotted_names:
        target = _implementation_of(name.partition(":")[0])
        if target not in {None, own} and not _share_folder(part_of(source.module), target):
            yield source.finding(
                line, f"{source.module} may not name {target}: only wiring knows implementations"
            )


def formats_and_providers_never_meet(source: Source) -> Iterator[Finding]:
    folder = (part_of(source.module) or "").partition(".")[0]
    other = {"ingress": "providers", "providers": "ingress"}.get(folder)
    if other is None:
        return
    for found in source.imports:
        if (part_of(found.name) or "").partition(".")[0] == other:
            yield source.finding(
                found.line, f"{folder} may not import {other}: they meet at core's events"
            )


def packages_stay_in_their_home(source: Source) -> Iterator[Finding]:
    place = _place_of(source.module)
    for found in source.imports:
        package = found.name.partition(".")[0]
        homes = HOMES.get(package)
        if place and homes is not None and not any(_lies_in(place, home) for home in homes):
            where = " and ".join(homes) or "libraries"
            yield source.finding(found.line, f"{package} is imported only in {where}")


def settings_alone_reads_the_environment(source: Source) -> Iterator[Finding]:
    if source.module == "tollgate.settings" or part_of(source.module) is None:
        return
    for name, line in source.uses:
        if name in _ENVIRONMENT:
            yield source.finding(line, f"{name}: only settings.py reads the environment")


def time_and_chance_come_from_core(source: Source) -> Iterator[Finding]:
    if source.module in _TIME_AND_CHANCE_HOMES or part_of(source.module) is None:
        return
    rule = "time and chance come from core/clock.py and core/ids.py"
    for found in source.imports:
        if found.name.partition(".")[0] in _CHANCE_MODULES:
            yield source.finding(found.line, f"{found.name}: {rule}")
    for name, line in source.uses:
        reads_clock = name.partition(".")[0] == "time" and name not in _TIME_FORMATS
        if reads_clock or name in _TIME_AND_CHANCE:
            yield source.finding(line, f"{name}: {rule}")


def _share_folder(part: str | None, other: str | None) -> bool:
    return (part or "").partition(".")[0] == (other or "").partition(".")[0]


RULES: tuple[Rule, ...] = (
    imports_run_one_way,
    implementations_are_imported_by_wiring_alone,
    formats_and_providers_never_meet,
    packages_stay_in_their_home,
    settings_alone_reads_the_environment,
    time_and_chance_come_from_core,
)


def _share_folder(part: str | None, other: str | None) -> bool:
    return (part or "").partition(".")[0] == (other or "").partition(".")[0]
