"""Programs, and the logging arrays that write them."""
