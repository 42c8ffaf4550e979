"""The commands to run after a deploy: provider keys, a first management key, a request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tollgate.core.secret import create_secret_command

_INSTALLED: Final = Path(".venv/bin/tollgate")
_SECRETS: Final = """
Providers in routing.yaml are skipped until their keys are stored as secrets; Bedrock needs no key.
Type or pipe in each key, and end with Ctrl-D:
"""
_OTHERS: Final = """
No route needs these secrets, which are stored in the same way:
"""
_FIRST_USE: Final = """
The console: {console}
Next, once: create a management key. Its secret is shown only this once.
  {tollgate} first-key {stack}
Then set BASE_URL={url} and MANAGEMENT_KEY to the secret; create a key and add credit:
  curl "$BASE_URL/keys" -H "authorization: Bearer $MANAGEMENT_KEY" \\
    -H "content-type: application/json" -d '{{"name": "me"}}'
  curl "$BASE_URL/credits/grants" -H "authorization: Bearer $MANAGEMENT_KEY" \\
    -H "content-type: application/json" -d '{{"id": "first", "amount": 10, "note": "a start"}}'
  curl -N "$BASE_URL/chat/completions" -H "authorization: Bearer $KEY" \\
    -H "content-type: application/json" \\
    -d '{{"model": "fast", "stream": true, "messages": [{{"role": "user", "content": "Hello"}}]}}'
Check the deployment: TOLLGATE_API_KEY=$KEY {tollgate} doctor {stack}"""


def next_steps(
    stack: str, region: str, url: str, *, missing: Sequence[str], others: Sequence[str]
) -> str:
    """Return the text to print after a deploy, which ends with the key.

    Each secret in `missing` gets a command; `others` are secrets that no route needs.
    """
    lines = "".join(f"  {create_secret_command(name, region)}\n" for name in missing)
    secrets = _SECRETS + lines if lines else ""
    if others:
        secrets += f"{_OTHERS}  {', '.join(others)}\n"
    console = f"{url.removesuffix('/v1')}/console"
    where = f"--stack {stack} --region {region}"
    tollgate = str(_INSTALLED) if _INSTALLED.is_file() else "tollgate"
    return secrets + _FIRST_USE.format(stack=where, url=url, console=console, tollgate=tollgate)
