"""Documents in requests: text extraction, OCR, and the form that each endpoint gets."""
