"""Rule that each module of a shared folder has at least two users."""

from collections.abc import Collection, Iterable, Iterator

from tests.tidy.source import Finding, Source

# Packages whose modules are meant for several others.
SHARED_ROOMS = (
    "tollgate.ingress.shared",
    "tollgate.ingress.shared.wire",
    "tollgate.providers.shared",
    "tollgate.stores.aws",
)
USERS_MIN = 2


def shared_modules_have_two_users(
    sources: Iterable[Source], rooms: Collection[str] = SHARED_ROOMS
) -> Iterator[Finding]:
    """Yield each module of these packages that fewer than two other modules import."""
    every = [*sources]
    for source in every:
        if source.module.rpartition(".")[0] not in rooms or source.path.name == "__init__.py":
            continue
        users = {other.module for other in every if other is not source and _uses(other, source)}
        if len(users) < USERS_MIN:
            only = ", ".join(users) or "none"
            yield source.finding(1, f"users: {only}; put it with its user")


def _uses(source: Source, used: Source) -> bool:
    name = used.module
    return any(f"{found.name}.".startswith(f"{name}.") for found in source.imports)
