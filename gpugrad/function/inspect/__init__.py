"""Ways to look at a traced program: text, pages, timings."""
