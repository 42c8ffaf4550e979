"""List which host gets which credential, so that a change of it is seen, and can be pinned."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from tollgate.routing.schema import ProviderSection, Routing

_PORTS: Final = {"https": 443, "http": 80}
_GOOGLE: Final = "Google credentials"
_ROLE: Final = "AWS credentials"


class KeyHost(Struct, frozen=True, order=True):
    """A credential by its home, never its value, and the scheme, host and port that get it."""

    secret: str
    host: str

    def described(self) -> str:
        """Write the pair in words."""
        return f"{self.secret} to {self.host}"


def list_key_hosts(routing: Routing) -> dict[KeyHost, tuple[str, ...]]:
    """Return the pairs of a routing in order, each with the providers that send it."""
    found: dict[KeyHost, tuple[str, ...]] = {}
    for slug, provider in sorted(routing.providers.items()):
        for pair in key_hosts_of(provider):
            found[pair] = (*found.get(pair, ()), slug)
    return dict(sorted(found.items()))


def key_hosts_of(provider: ProviderSection) -> Iterator[KeyHost]:
    """Yield the pairs of one row; AWS's own hosts, which a row without an address has, are none."""
    if provider.base_url is None or not provider.sends_credentials:
        return
    host = _origin(provider.base_url)
    key = provider.key
    if key is not None and key.env is not None:
        yield KeyHost(f"variable {key.env}", host)
    if key is not None and key.secret is not None:
        yield KeyHost(f"secret {key.secret}", host)
    if key is None:
        yield KeyHost(_GOOGLE if provider.auth == "google" else _ROLE, host)


def _origin(base_url: str) -> str:
    """Return scheme, host and port in one spelling."""
    url = urlsplit(base_url.lower())
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    port = url.port or _PORTS[url.scheme]
    return (
        f"{url.scheme}://{host}" if port == _PORTS[url.scheme] else f"{url.scheme}://{host}:{port}"
    )
