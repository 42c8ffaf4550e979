"""AWS's own formats: request signatures, event streams and expiring credentials."""
