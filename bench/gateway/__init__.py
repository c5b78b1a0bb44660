"""What the gateway adds to a request, beside a pass-through proxy on the same stack and beside others' proxies."""
