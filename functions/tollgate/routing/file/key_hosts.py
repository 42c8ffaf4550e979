"""Lists the host to which each credential is sent, for reviews and for pins in templates."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from tollgate.routing.plugin_sections import OcrSection
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import ProviderSection
from tollgate.routing.tool_sections import WebSearchSection

# Sections that may send a key: a provider, or the service behind a tool or plugin.
KeyedRow = ProviderSection | WebSearchSection | OcrSection

_PORTS: Final = {"https": 443, "http": 80}
_GOOGLE: Final = "google"
_ROLE: Final = "aws"


class KeyHost(Struct, frozen=True, order=True):
    """A credential's name, never its value, and the origin to which it is sent."""

    secret: str
    host: str

    @property
    def pin(self) -> str:
        """Return the pair in the form in which a template pins it. It has no spaces, so YAML
        writers do not wrap it.
        """
        return f"{self.secret}>{self.host}"


def list_key_hosts(routing: Routing) -> dict[KeyHost, tuple[str, ...]]:
    """Return the sorted pairs of a routing, each with the providers or tools that use it."""
    found: dict[KeyHost, tuple[str, ...]] = {}
    for slug, provider in sorted(routing.providers.items()):
        for pair in key_hosts_of(provider):
            found[pair] = (*found.get(pair, ()), slug)
    search = routing.server_tools.web_search
    for pair in () if search is None else key_hosts_of(search):
        found[pair] = (*found.get(pair, ()), "web_search")
    for pair in () if routing.ocr is None else key_hosts_of(routing.ocr):
        found[pair] = (*found.get(pair, ()), "pdf.ocr")
    return dict(sorted(found.items()))


def key_hosts_of(row: KeyedRow) -> Iterator[KeyHost]:
    """Yield the pairs of a section. AWS hosts have no pairs, because they need no `base_url`."""
    if row.address is None or not row.sends_credentials:
        return
    host = _origin(row.address)
    key = row.key
    if key is not None and key.env is not None:
        yield KeyHost(f"variable:{key.env}", host)
    if key is not None and key.secret is not None:
        yield KeyHost(f"secret:{key.secret}", host)
    if key is None:
        is_google = isinstance(row, ProviderSection) and row.auth == "google"
        yield KeyHost(_GOOGLE if is_google else _ROLE, host)


def _origin(base_url: str) -> str:
    """Return the scheme, host and non-default port of a URL in canonical form."""
    try:
        url = urlsplit(base_url.lower())
        port = url.port or _PORTS[url.scheme]
    except ValueError:  # Another check reports invalid addresses.
        return base_url
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    return (
        f"{url.scheme}://{host}" if port == _PORTS[url.scheme] else f"{url.scheme}://{host}:{port}"
    )
