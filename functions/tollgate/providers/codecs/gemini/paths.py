"""The paths of a Gemini model, on AI Studio and on Vertex AI."""

from urllib.parse import quote

from tollgate.providers.ports.base import Target


def model_path(target: Target) -> str:
    """Return the path of a model, to which a method is appended."""
    model = quote(target.upstream_model, safe="")
    owner = "/v1beta"
    if target.project is not None and target.location is not None:
        project, location = quote(target.project, safe=""), quote(target.location, safe="")
        owner = f"/v1/projects/{project}/locations/{location}/publishers/google"
    return f"{owner}/models/{model}"
