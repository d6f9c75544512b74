"""What an op is: its record, and the functions generated from it."""
