"""Invoices of providers: their formats, and their comparison with our records."""
