"""Programs, and the logging array that writes them."""
