"""Moderations by an analyzer of Microsoft Presidio, which finds personal information."""
