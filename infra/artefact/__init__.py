"""Builds what a function is deployed as: `python -m infra.artefact FUNCTION FOLDER`.

SAM calls it through functions/Makefile. Runs under Python 3.11 or newer, and needs no Docker.
"""
