"""Deployment of a stage: questions, change set, publication and next steps."""
