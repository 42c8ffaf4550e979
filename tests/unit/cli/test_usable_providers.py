"""The banner of `tollgate dev`: which providers are usable, and the variables of the others."""

from tests.unit.routing.catalogs import catalog, endpoint, model, provider
from tollgate.cli.server.local_gateway import describe_providers, describe_tools
from tollgate.core.secret import CredentialPlace


def test_the_providers_with_the_most_models_come_first_and_the_rest_is_counted() -> None:
    slugs = [f"host-{number:02}" for number in range(14)]
    models = {
        f"acme/model-{number}": model(*(endpoint(slug, f"m{number}") for slug in slugs[number:]))
        for number in range(14)
    }
    of = catalog(
        providers={slug: provider() for slug in slugs}, models=models, aliases={}, routes={}
    )
    places = {
        slug: None if slug == "host-00" else CredentialPlace(variables=(f"{slug}_KEY",))
        for slug in slugs
    }
    usable, heading, *exports, rest = describe_providers(places, of).splitlines()
    assert usable == "  usable here     host-00"
    assert heading.startswith("  without a key   the others")
    assert [line.split("# ")[1] for line in exports] == slugs[:4:-1]
    assert rest == "    and 4 more; the error of a request names its variable"


def test_many_providers_of_one_key_are_counted_in_its_line() -> None:
    slugs = [f"host-{number}" for number in range(5)]
    of = catalog(
        providers={slug: provider() for slug in slugs},
        models={"acme/model": model(*(endpoint(slug, "m") for slug in slugs))},
        aliases={},
        routes={},
    )
    place = CredentialPlace(variables=("SHARED_KEY",))
    *_, export = describe_providers(dict.fromkeys(slugs, place), of).splitlines()
    assert export == "    export SHARED_KEY=...  # host-0, host-1, host-2 and 2 more"


def test_a_tool_without_its_key_has_a_line_with_the_remedy() -> None:
    place = CredentialPlace(variables=("TAVILY_API_KEY",))
    assert describe_tools({}) == ""
    assert describe_tools({"web_search": place}) == (
        "\n  web_search      without its key: set environment variable TAVILY_API_KEY"
    )
