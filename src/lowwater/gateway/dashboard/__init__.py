"""The dashboard: sessions as they go on, in a browser."""
