"""A session played again under other policies, and the cheapest schedule it could have had."""
