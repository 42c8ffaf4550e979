"""Documents that are being read: by a function, and in the bucket meanwhile."""
