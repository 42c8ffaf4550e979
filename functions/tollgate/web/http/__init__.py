"""HTTP under all routes: paths, ids, cross-origin requests, errors, replies, CSV."""
