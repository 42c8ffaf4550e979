"""Upstream providers: codecs translate, transports carry, rows of routing.yaml say which."""
