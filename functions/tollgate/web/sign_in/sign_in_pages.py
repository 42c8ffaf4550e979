"""The pages shown during sign-in: the form to confirm a code, and the result."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from typing import Final

from starlette.responses import HTMLResponse

_STYLE: Final = """\
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center}
main{max-width:26rem;padding:2rem 1.5rem}
h1{font-size:1.25rem;margin:0 0 .75rem}
p{margin:.5rem 0}
label{display:block;margin:1rem 0 .25rem}
input{font:600 1.5rem/1.2 ui-monospace,monospace;letter-spacing:.1em;text-transform:uppercase;\
width:100%;box-sizing:border-box;padding:.5rem .75rem;border:1px solid;border-radius:.4rem}
button{font:inherit;font-weight:600;margin-top:1rem;padding:.55rem 1.1rem;border:0;\
border-radius:.4rem;background:#1a56db;color:#fff;cursor:pointer}
button:focus-visible,input:focus-visible{outline:3px solid #76a9fa;outline-offset:2px}
"""
_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode("ascii")
SIGN_IN_HEADERS: Final[Mapping[str, str]] = {
    # form-action is missing because browsers apply it to redirects as well, and the form redirects
    # to the issuer.
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def code_page(user_code: str, *, action: str, problem: str | None = None) -> HTMLResponse:
    """Return the page on which a person confirms the code of a waiting program."""
    alert = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return _page(
        "Sign in a program",
        f"<p>Continue only if your own terminal shows this code and you began the sign-in "
        f"there yourself.</p>{alert}"
        f'<form method="post" action="{escape(action)}">'
        '<label for="code">Code</label>'
        f'<input id="code" name="user_code" value="{escape(user_code)}" autocomplete="off" '
        'spellcheck="false" maxlength="20" required>'
        '<button type="submit">Continue to sign in</button></form>',
        status=400 if problem else 200,
    )


def done_page(name: str) -> HTMLResponse:
    """Return the page after a successful sign-in."""
    return _page(
        "You are signed in",
        f"<p>You are signed in as <strong>{escape(name)}</strong>.</p>"
        "<p>Return to your terminal; you may close this page.</p>",
    )


def failed_page(reason: str, *, status: int) -> HTMLResponse:
    """Return the page after a refused sign-in."""
    return _page("You are not signed in", f'<p role="alert">{escape(reason)}</p>', status=status)


def _page(title: str, content: str, *, status: int = 200) -> HTMLResponse:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Tollgate</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{content}</main></body></html>",
        status,
        dict(SIGN_IN_HEADERS),
    )
