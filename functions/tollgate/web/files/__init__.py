"""Routes, bodies and uploads of files."""
