"""What ci/gpu runs: scripts that append records to a file, line by line, and what reads them."""
