"""Rows of Google Cloud, and what differs between Gemini models, from the file to an attempt."""

from typing import Any

from tests.unit.routing import catalogs


def test_a_row_of_google_cloud_reaches_the_codec_with_its_place_and_the_models_own_ways() -> None:
    vertex = catalogs.provider(
        codec="gemini",
        base_url="https://aiplatform.googleapis.com",
        auth="google",
        project="acme-1",
        location="europe-west4",
        dialect={"reasoning": "gemini_budget", "gemini": {"thinking_tokens_min": 1}},
    )
    newer: dict[str, Any] = {
        "reasoning": "gemini_level",
        "efforts": ("low", "high"),
        "gemini": {"signed_calls": True, "schema_beside_tools": True},
    }
    catalog = catalogs.catalog(
        providers={"vertex": vertex},
        models={
            "google/old": catalogs.model(catalogs.endpoint("vertex", "old-1")),
            "google/new": catalogs.model(
                {**catalogs.endpoint("vertex", "new-1"), "dialect": newer}
            ),
        },
        aliases={},
        routes={},
    )
    assert catalog.providers["vertex"].auth == "google"
    targets = {
        name: catalogs.plan_of(catalog, catalogs.request(name), principal=catalogs.principal())
        .attempts[0]
        .target
        for name in ("google/old", "google/new")
    }
    for target in targets.values():
        assert (target.project, target.location) == ("acme-1", "europe-west4")
    old, new = (targets[name].dialect for name in ("google/old", "google/new"))
    assert (old.reasoning, old.gemini.thinking_tokens_min) == ("gemini_budget", 1)
    assert not old.gemini.signed_calls
    assert (new.reasoning, new.efforts) == ("gemini_level", ("low", "high"))
    assert new.gemini.signed_calls
    assert new.gemini.schema_beside_tools
