"""Suites that attack the gateway as a stranger or a hostile tenant would; each is bounded."""
