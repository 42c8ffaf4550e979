"""Webhooks of workspaces: their endpoints, and the deliveries of events."""
