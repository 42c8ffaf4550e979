"""The commands to run after a deploy: a first management key, a request, provider keys."""

from collections.abc import Sequence
from typing import Final

from tollgate.core.secret import create_secret_command

_FIRST_USE: Final = """
Next, once: create a management key. Its secret is shown only this once.
  .venv/bin/tollgate first-key {stack}
Then set BASE_URL to ApiUrl above and MANAGEMENT_KEY to the secret; create a key and add credit:
  curl "$BASE_URL/keys" -H "authorization: Bearer $MANAGEMENT_KEY" \\
    -H "content-type: application/json" -d '{{"name": "me"}}'
  curl "$BASE_URL/credits/grants" -H "authorization: Bearer $MANAGEMENT_KEY" \\
    -H "content-type: application/json" -d '{{"id": "first", "amount": 10, "note": "a start"}}'
  curl -N "$BASE_URL/chat/completions" -H "authorization: Bearer $KEY" \\
    -H "content-type: application/json" \\
    -d '{{"model": "fast", "stream": true, "messages": [{{"role": "user", "content": "Hello"}}]}}'
Check the deployment: TOLLGATE_API_KEY=$KEY .venv/bin/tollgate doctor {stack}
"""
_SECRETS: Final = """
Bedrock's Nova models need no key. Other providers in routing.yaml are skipped until their keys are
stored as secrets. Type or pipe in each key, and end with Ctrl-D:
"""


def next_steps(stack: str, region: str, missing_secrets: Sequence[str]) -> str:
    """Return the text to print after a deploy, with a command for each missing secret."""
    lines = "".join(f"  {create_secret_command(name, region)}\n" for name in missing_secrets)
    text = _FIRST_USE.format(stack=f"--stack {stack} --region {region}")
    return text + (_SECRETS + lines if lines else "")
