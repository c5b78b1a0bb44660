"""Other people's agents on Lowwater, beside what they bring along themselves."""
