"""Build of the folder that a function is deployed from: `python -m infra.artefact FUNCTION FOLDER`.

SAM calls this package through functions/Makefile. It runs under Python 3.11 or newer, and needs no
Docker.
"""
