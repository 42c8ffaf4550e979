"""A scripted provider on loopback, and builders of what it says."""

from tests.upstream.server import FakeUpstream, Received, Script

__all__ = ["FakeUpstream", "Received", "Script"]
