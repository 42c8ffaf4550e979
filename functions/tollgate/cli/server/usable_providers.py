"""The providers that can be used on this machine, and the variables that the others need."""

from collections.abc import Mapping

from tollgate.core.secret import CredentialPlace


def describe_providers(places: Mapping[str, CredentialPlace | None]) -> str:
    """Return lines for the banner: usable providers, and an `export` for each of the others."""
    usable = ", ".join(slug for slug, place in places.items() if place is None)
    lines = [f"  usable here     {usable or 'no provider'}"]
    missing: dict[tuple[str, ...], list[str]] = {}
    for slug, place in places.items():
        if place is not None:
            missing.setdefault(place.variables, []).append(slug)
    without_variable = missing.pop((), None)
    if without_variable:
        lines.append(f"  not usable      {', '.join(without_variable)}: no variable is named")
    if missing:
        lines.append("  without a key   the others; export one, then start again:")
        # A line for each variable, also of those that are needed together.
        exports = [
            (f"{name}=...", ", ".join(slugs)) for names, slugs in missing.items() for name in names
        ]
        width = max(len(setting) for setting, _ in exports)
        lines += [f"    export {setting:<{width}}  # {slugs}" for setting, slugs in exports]
    return "\n".join(lines)
