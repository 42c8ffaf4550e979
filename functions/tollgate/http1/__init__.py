"""The HTTP/1.1 client for all requests that the gateway sends."""
