"""Which module may import which, and who alone may reach the environment, the clock and chance."""

from collections.abc import Iterator
from functools import cache

from tests.tidy.source import Finding, Rule, Source

# Lowest first. A module imports from its own line and from those above it here, never from below.
LAYERS = (
    ("core",),
    ("http1",),
    ("aws",),
    (
        "ingress",
        "providers.base",
        "providers.dialect",
        "providers.formats",
        "providers.media_dialects",
        "providers.parameters",
        "providers.shared",
        "providers.unwrapping",
        "providers.wire_format",
        "stores.administration",
        "stores.base",
        "stores.credit",
        "stores.people",
        "stores.rules",
        "tools.base",
    ),
    ("routing",),
    ("routing.planning",),
    ("login",),
    ("concrete", "reading"),
    ("engine",),
    ("routing.file",),
    ("routing.review",),
    ("settings",),
    ("web", "lambda_runtime", "observability"),
    ("wiring",),
    ("chat", "api", "reader", "sweeper", "rollup", "sign_in", "cli"),
)
_RANK = {part: rank for rank, line in enumerate(LAYERS) for part in line}
_ABSTRACT = {part for part in _RANK if part.startswith(("providers.", "stores.", "tools."))}

# Packages that have one home, and the parts of the project that are this home.
HOMES = {
    # aioboto3's client; `http1` is the gateway's own.
    "aiohttp": (),
    "boto3": ("cli",),
    "docx": ("reading",),
    "cryptography": ("login",),
    "fastapi": ("web",),
    "httptools": ("http1",),
    "joserfc": ("login",),
    "lxml": ("reading",),
    "mangum": ("api", "lambda_runtime", "sign_in"),
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
# What `time` offers beside clocks and waiting: a moment that is given, written another way.
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
_TIME_AND_CHANCE_HOMES = {"tollgate.core.clock", "tollgate.core.entropy", "tollgate.core.ids"}


@cache
def part_of(name: str) -> str | None:
    """Return the part of the project that a dotted name lies in, None if it is not ours.

    A part is a package directly in tollgate or an entry file; `providers` and `stores` are told
    apart one level down, because their protocols and their implementations are layers of their own.
    """
    match name.split("."):
        case ["chat" | "api" | "reader" | "sweeper" | "rollup" | "sign_in" as entry, *_]:
            return entry
        case ["tollgate"]:
            return "core"
        case ["tollgate", "__main__", *_]:
            return "cli"
        case ["tollgate", "providers" | "stores" | "tools" as folder]:
            return f"{folder}.base"
        case ["tollgate", "providers", module, *_]:
            return f"providers.{module}"
        case [
            "tollgate",
            "stores",
            "administration" | "base" | "credit" | "people" | "rules" as module,
            *_,
        ]:
            return f"stores.{module}"
        case ["tollgate", "stores", *_]:
            return "stores"
        case ["tollgate", "tools", "base", *_]:
            return "tools.base"
        case ["tollgate", "tools", *_]:
            return "tools"
        case ["tollgate", "routing", "file" | "planning" | "review" as room, *_]:
            return f"routing.{room}"
        case ["tollgate", part, *_]:
            return part
        case _:
            return None


def imports_run_one_way(source: Source) -> Iterator[Finding]:
    part = part_of(source.module)
    if part is None:
        return
    rank = _rank(part)
    if rank is None:
        yield source.finding(1, f"{part} is in no layer: give it a place in tests/tidy/layers.py")
        return
    for found in source.imports:
        target = part_of(found.name)
        target_rank = None if target is None else _rank(target)
        if target_rank is not None and target_rank > rank:
            yield source.finding(found.line, f"{part} lies below {target} and may not import it")
    for name, line in source.dotted_names:
        target = part_of(name.partition(":")[0])
        target_rank = None if target is None else _rank(target)
        # The table of formats lies below the codecs that it names, in the folder of both.
        if target_rank is not None and target_rank > rank and not _share_folder(part, target):
            yield source.finding(line, f"{part} lies below {target} and may not name its objects")


def implementations_are_imported_by_wiring_alone(source: Source) -> Iterator[Finding]:
    part = part_of(source.module)
    if part in {None, "wiring", "providers.registry"}:
        return
    named = [(name.partition(":")[0], line) for name, line in source.dotted_names]
    for name, line in [*((found.name, found.line) for found in source.imports), *named]:
        target = part_of(name)
        if target is None or not _is_concrete(target) or target == part:
            continue
        if (name, line) not in named or not _share_folder(part, target):
            yield source.finding(
                line, f"{part} may not import {target}: only wiring knows implementations"
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
    part = part_of(source.module)
    for found in source.imports:
        package = found.name.partition(".")[0]
        home = HOMES.get(package)
        if not part or home is None or part in home:
            continue
        if not (part == "stores.base" and "stores" in home):
            where = " and ".join(home) or "libraries"
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


def _is_concrete(part: str) -> bool:
    folder = part.partition(".")[0]
    return folder in {"providers", "reading", "stores", "tools"} and part not in _ABSTRACT


def _rank(part: str) -> int | None:
    return _RANK["concrete"] if _is_concrete(part) else _RANK.get(part)


RULES: tuple[Rule, ...] = (
    imports_run_one_way,
    implementations_are_imported_by_wiring_alone,
    formats_and_providers_never_meet,
    packages_stay_in_their_home,
    settings_alone_reads_the_environment,
    time_and_chance_come_from_core,
)
