"""Checks the rows whose requests are signed for an Amazon Bedrock service, and their models.

Bedrock user guide, "Responses API" and "Endpoints supported by Amazon Bedrock" (2026-11-27): a
request signed for another region is refused, bedrock-runtime creates responses only for inference
profiles, and Mantle does not know any profiles.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from tollgate.providers.ports.base import SIGNED_SERVICES
from tollgate.providers.shared.bedrock_models import GEOGRAPHIES
from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.problems import Problem
from tollgate.routing.schema import EndpointSection, ProviderSection

_SIGNING: Final = "http_sse"
_OF_AWS: Final = (".api.aws", ".amazonaws.com", ".amazonaws.com.cn")


def check_signature(
    document: YamlDocument, where: Where, provider: ProviderSection
) -> Iterator[Problem]:
    """Yield the problems of a signed row: transport, region, host, and a key that would not be
    used.
    """
    if provider.auth not in SIGNED_SERVICES:
        return
    auth = provider.auth
    if provider.transport != _SIGNING:
        message = f"auth {auth} cannot use transport {provider.transport}"
        yield document.at_value((*where, "auth"), "R041", message, hint=f"write {_SIGNING}")
    if provider.key is not None:
        message = f"auth {auth} signs with AWS credentials and sends no key"
        hint = "write auth: bearer for a Bedrock API key"
        yield document.at_value((*where, "auth"), "R041", message, hint=hint)
    if provider.region is None:
        message = f"provider {where[-1]} has no region, which auth {auth} needs"
        yield document.at_key(where, "R042", message)
    elif provider.base_url is not None:
        yield from _host(document, where, provider.base_url, provider)


def _host(
    document: YamlDocument, where: Where, base_url: str, provider: ProviderSection
) -> Iterator[Problem]:
    """Yield a problem for an AWS host that belongs to another service or region."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:  # Another check reports invalid addresses.
        return
    name = SIGNED_SERVICES[provider.auth]
    ours = (f"{name}.{provider.region}.", f"{name}-fips.{provider.region}.")
    if host.endswith(_OF_AWS) and not any(each in host for each in ours):
        message = f"a signature for {provider.auth} in {provider.region} is not valid at {host}"
        hint = f"write {name}.{provider.region} in base_url"
        yield document.at_value((*where, "base_url"), "R041", message, hint=hint)


def check_signed_model(
    document: YamlDocument, where: Where, endpoint: EndpointSection, row: ProviderSection
) -> Iterator[Problem]:
    """Yield a problem for an inference profile at Mantle, or for a model id where a profile is
    needed.
    """
    is_profile = endpoint.upstream.partition(".")[0] in GEOGRAPHIES
    where = (*where, "upstream")
    if row.auth == "bedrock-mantle" and is_profile:
        message = f"{endpoint.upstream} is an inference profile, which Mantle does not serve"
        yield document.at_value(where, "R041", message, hint="write the model without its prefix")
    if row.auth == "bedrock" and row.codec == "openai_responses" and not is_profile:
        message = f"{endpoint.upstream} is not an inference profile, which responses need"
        hint = f"write a profile, such as us.{endpoint.upstream}"
        yield document.at_value(where, "R041", message, hint=hint)
