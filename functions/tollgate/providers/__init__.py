"""Upstream providers: codecs translate requests, transports send them, and rows configure both."""
