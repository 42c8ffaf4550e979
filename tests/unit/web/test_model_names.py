"""Models under names that the file does not state, and the places of their endpoints.

Keeps C3, C21.
"""

from tests.stores import TESTER
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.unit.web.test_api_app import Api, api
from tollgate.stores.ports.administration import NewKey

PROVIDERS = {
    "near": provider(countries=("FR",)),
    "far": provider(),
    "bedrock": provider(codec="bedrock", transport="bedrock_runtime", region="eu-central-1"),
}
MODELS = {
    "openai/gpt-5": model(endpoint("far", "gpt-5"), names=("gpt-5-2025-08-07",)),
    "anthropic/claude-opus-4.7": model(
        endpoint("near", "claude-opus-4-7"),
        endpoint("bedrock", "eu.anthropic.claude-opus-4-7"),
        endpoint("bedrock", "anthropic.claude-opus-4-7"),
        endpoint("far", "opus"),
        replaces=("claude-3-opus",),
    ),
    "acme/gpt-5-mini": model(endpoint("far", "m")),
    "openai/gpt-5-mini": model(endpoint("far", "gpt-5-mini")),
}


async def gateway() -> Api:
    return await api(
        providers=PROVIDERS, models=MODELS, routes={}, aliases={"best": {"to": "openai/gpt-5"}}
    )


async def test_c21_a_model_is_shown_by_any_of_its_names_and_listed_by_its_slug() -> None:
    call = await gateway()
    for name in ("gpt-5", "gpt-5-2025-08-07", "azure/gpt-5", "tensorzero::model_name::gpt-5"):
        shown = (await call("GET", f"/v1/models/{name}")).json
        assert (shown["id"], shown["canonical_slug"]) == (name, "openai/gpt-5")
    listed = [each["id"] for each in (await call("GET", "/v1/models")).json["data"]]
    assert listed == [*sorted(MODELS), "best"]
    offers = (await call("GET", "/v1/models/anthropic/claude-opus-4-7/endpoints")).json["data"]
    assert offers["id"] == "anthropic/claude-opus-4.7"


async def test_c21_an_ambiguous_or_retired_name_is_404_with_the_models_to_use() -> None:
    call = await gateway()
    reply = await call("GET", "/v1/models/gpt-5-mini")
    assert reply.status == 404
    assert "acme/gpt-5-mini or openai/gpt-5-mini" in reply.json["error"]["message"]
    reply = await call("GET", "/v1/models/claude-3-opus")
    assert reply.status == 404
    assert "use anthropic/claude-opus-4.7 instead" in reply.json["error"]["message"]


async def test_c21_a_key_sees_under_a_derived_name_what_it_may_use() -> None:
    call = await gateway()
    new = NewKey(workspace_id="acme", label="x", models=("openai/*", "claude-*"))
    secret = (await call.home.stores.keys.create(new, by=TESTER)).secret
    assert (await call("GET", "/v1/models/gpt-5", key=secret)).status == 200
    refused = await call("GET", "/v1/models/claude-opus-4-7", key=secret)
    assert refused.status == 404
    assert "anthropic" not in refused.json["error"]["message"]
    told = (await call("GET", "/v1/models/gpt-5-mini", key=secret)).json["error"]["message"]
    assert "acme" not in told


async def test_c3_a_model_and_its_endpoints_say_where_they_run() -> None:
    call = await gateway()
    slug = "anthropic/claude-opus-4.7"
    profile, region = {"region": "eu"}, {"region": "eu-central-1", "country_codes": ["DE"]}
    shown = (await call("GET", f"/v1/models/{slug}")).json
    assert shown["datacenters"] == [{"country_codes": ["FR"]}, profile, region]
    offers = (await call("GET", f"/v1/models/{slug}/endpoints")).json["data"]["endpoints"]
    places = [each.get("datacenter") for each in offers]
    assert places == [{"country_codes": ["FR"]}, profile, region, None]
    assert "datacenters" not in (await call("GET", "/v1/models/openai/gpt-5")).json
