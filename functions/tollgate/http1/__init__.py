"""Send requests over HTTP/1.1 and read their replies, for every caller of the gateway's own."""
