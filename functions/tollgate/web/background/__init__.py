"""Background responses: created by a request, answered by a worker, read and resumed later."""
