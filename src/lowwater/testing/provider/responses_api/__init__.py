"""The Responses API's rules, answers and events."""
