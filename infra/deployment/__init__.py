"""Deployment of a stage: questions, build, change set, publication and next steps."""
