"""Judgements by Bedrock Guardrails, without a model."""
