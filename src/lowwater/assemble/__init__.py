"""From a view to a request that the provider accepts."""
