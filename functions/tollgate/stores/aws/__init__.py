"""Shared parts of all stores on AWS: signed clients, tables, items and expressions."""
