"""Guardrails of the gateway, which judge conversations with any provider."""
