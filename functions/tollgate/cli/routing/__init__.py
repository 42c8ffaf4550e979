"""Commands that read, check and compare routing files."""
