"""Declarations of the ops, by topic, under the array API's names."""
