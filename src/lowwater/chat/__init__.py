"""`lowwater chat`: a small reference agent that shows how Lowwater is used in a loop."""
