"""Videos: created by a request, made by a provider, polled and stored by workers, read later."""
