"""Random numbers from one counter-based generator."""
