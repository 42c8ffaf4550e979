"""Providers' invoices: their formats, and their comparison with the gateway's records."""
