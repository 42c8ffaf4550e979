"""Moderations by Bedrock Guardrails, without a model."""
