"""Documents of a request: read, recognized, and put in the form that an endpoint takes."""
