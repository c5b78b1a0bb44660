"""Sessions of a support agent with customers, orders and tickets."""
