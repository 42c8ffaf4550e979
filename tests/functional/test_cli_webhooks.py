"""`tollgate webhooks` against a running gateway, as a platform team uses it."""

import json

from tests.functional.command_line import on_screen, printed, run
from tests.local_server import LocalServer


def test_a_team_makes_tries_changes_and_deletes_a_webhook(server: LocalServer) -> None:
    # No name of this kind is ever found (RFC 6761).
    address = "https://hooks.invalid/tollgate"
    secret = printed(server, "webhooks", "create", address, "--event", "key.*").strip()
    assert secret.startswith("whsec_")
    [made] = json.loads(printed(server, "webhooks", "ls", "--json"))
    assert (made["url"], made["events"], made["enabled"]) == (address, ["key.*"], True)
    assert secret not in printed(server, "webhooks", "ls")
    assert any("key.*" in line for line in on_screen(server, "webhooks", "ls", columns=140))

    tried = run(server, "webhooks", "test", made["id"])
    assert tried.returncode == 1
    assert "webhook.test" in tried.stdout
    assert "failed" in tried.stdout
    assert printed(server, "webhooks", "rotate", made["id"], "--grace-hours", "1") != secret
    changed = printed(server, "webhooks", "update", made["id"], "--disable", "--event", "budget.*")
    assert "budget.*" in changed
    assert run(server, "webhooks", "update", made["id"]).returncode == 2
    assert run(server, "webhooks", "deliveries", made["id"]).returncode == 0
    unknown = run(server, "webhooks", "redeliver", made["id"], "evt_x")
    assert "(not_found, " in unknown.stderr
    refused = run(server, "webhooks", "create", "https://10.0.0.1/")
    assert "url must have a host name" in refused.stderr

    printed(server, "webhooks", "delete", made["id"])
    assert json.loads(printed(server, "webhooks", "ls", "--json")) == []
