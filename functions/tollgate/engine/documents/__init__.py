"""Documents in requests: extraction, OCR and conversion for each endpoint."""
