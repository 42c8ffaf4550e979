"""Commands that call a running gateway over HTTP."""
