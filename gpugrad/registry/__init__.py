"""The record of an op, and the functions generated from it."""
