"""What is known of models: names, windows, prices, cache rules."""
