"""Readers of providers' invoices, and the comparison with the gateway's records."""
