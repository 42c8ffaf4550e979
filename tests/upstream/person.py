"""A person's browser, run as a program: `python -m tests.upstream.person ADDRESS SUBJECT`.

It signs in at oidc-provider-mock, and follows where that leads.
"""

import sys
import urllib.request
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Person:
    """A browser with cookies, that stops at every redirect."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        jar = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(jar, _NoRedirects)

    def confirm(self, page: str) -> str:
        """Confirm the code that a device page shows, and sign in; return the last page."""
        parts = urlsplit(page)
        origin = f"{parts.scheme}://{parts.netloc}"
        form = {"user_code": parse_qs(parts.query)["user_code"][0]}
        assert form["user_code"] in self._ask(page)[1]
        address, _ = self._ask(f"{origin}{parts.path}", form, {"origin": origin})
        return self._sign_in(address)

    def visit(self, page: str) -> str:
        """Sign in at an address of the gateway; return the last page."""
        return self._sign_in(self._ask(page)[0])

    def _sign_in(self, issuer: str) -> str:
        address, _ = self._ask(issuer, {"sub": self._subject})
        while True:
            address, page = self._ask(address)
            if not address:
                return page

    def _ask(
        self, address: str, form: dict[str, str] | None = None, headers: Any = None
    ) -> tuple[str, str]:
        content = None if form is None else urlencode(form).encode()
        request = urllib.request.Request(address, data=content, headers=headers or {})
        try:
            reply: HTTPResponse | HTTPError = self._opener.open(request, timeout=10)
        except HTTPError as other:
            reply = other
        with reply:
            return reply.headers.get("location") or "", reply.read().decode()


if __name__ == "__main__":
    print(Person(sys.argv[2]).visit(sys.argv[1]))
