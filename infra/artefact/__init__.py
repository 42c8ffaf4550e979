"""Build of a function's deployment folder: `python -m infra.artefact FUNCTION FOLDER`.

SAM runs this package through functions/Makefile, with Python 3.11 or newer and without Docker.
"""
