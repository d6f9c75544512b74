"""Other libraries' names over gpugrad's: a program for one of them runs with one import changed.

Each room is loaded only when it is imported.
"""
