"""HTTP for all routes: paths, ids, cross-origin requests, errors, replies and CSV."""
