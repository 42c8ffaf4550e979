"""Runs batches: validates their files, runs their lines, and joins the results."""
