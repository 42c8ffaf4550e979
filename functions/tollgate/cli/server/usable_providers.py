"""Text about providers that are usable on this machine, and variables that others need."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from tollgate.core.secret import CredentialPlace, describe_remedy
from tollgate.routing.planning.catalog import Catalog

# More lines would push the example request off the screen.
_EXPORTS_MAX: Final = 9


def describe_tools(places: Mapping[str, CredentialPlace]) -> str:
    """Return a line for each server tool without a key, with the remedy."""
    return "".join(
        f"\n  {name:<15} without its key: {describe_remedy((credential,))}"
        for name, credential in places.items()
    )


def describe_providers(places: Mapping[str, CredentialPlace | None], catalog: Catalog) -> str:
    """Return lines with usable providers and an `export` for others, by number of models."""
    offers = Counter(
        endpoint.provider for model in catalog.models.values() for endpoint in model.endpoints
    )
    places = dict(sorted(places.items(), key=lambda each: -offers[each[0]]))
    usable = ", ".join(slug for slug, credential in places.items() if credential is None)
    lines = [f"  usable here     {usable or 'no provider'}"]
    missing: dict[tuple[str, ...], list[str]] = {}
    for slug, credential in places.items():
        if credential is not None:
            missing.setdefault(credential.variables, []).append(slug)
    without_variable = missing.pop((), None)
    if without_variable:
        lines.append(f"  not usable      {', '.join(without_variable)}: no variable is named")
    if missing:
        lines.append("  without a key   the others; export one, then start again:")
        # Each variable has its own line, even if a provider needs several variables.
        exports = [
            (f"{name}=...", ", ".join(slugs)) for names, slugs in missing.items() for name in names
        ]
        shown, hidden = exports[:_EXPORTS_MAX], exports[_EXPORTS_MAX:]
        width = max(len(setting) for setting, _ in shown)
        lines += [f"    export {setting:<{width}}  # {slugs}" for setting, slugs in shown]
        if hidden:
            lines.append(f"    and {len(hidden)} more, see the providers in the routing file")
    return "\n".join(lines)
