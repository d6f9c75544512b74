"""Declarations of the ops, by topic. Importing this declares them all: see `gpugrad.OPS`."""

# fmt: off
from gpugrad.ops import (
    activations, adaptive_pooling, applying, arranging, attention, average_pooling, axes, bessel,
    binary_losses, bits, channel_norms, classification_losses, comparison, continuous,
    conv_layers, convolution, creation, cumulative, dct, decompositions, differences, discrete,
    distances, dropout, einsum, elementwise, entropy, error_functions, factors, fft, fft_real,
    frequencies, gamma_functions, gates, gathering, generator, grids, histograms, incomplete_beta,
    incomplete_gamma, index_tricks, indexing, indexing_under_vmap, inspecting, integrals, joining,
    layers, least_squares, linalg, losses, margin_losses, matrix_functions, multilabel_losses,
    nan_reductions, nn, normalization, norms, numeric, ordering, padding, patches, philox,
    polynomials, pooling, products, quantiles, random, rearranging, reduction, rejection,
    resampling, resizing, running, sampling, sampling_gradients, segments, selecting,
    sequence_losses, sets, shaping, signal, sorting, special, special_matrices, stacking,
    statistics, vectors, warping, windows,
)

__all__ = [
    "activations", "adaptive_pooling", "applying", "arranging", "attention", "average_pooling",
    "axes", "bessel", "binary_losses", "bits", "channel_norms", "classification_losses",
    "comparison", "continuous", "conv_layers", "convolution", "creation", "cumulative", "dct",
    "decompositions", "differences", "discrete", "distances", "dropout", "einsum", "elementwise",
    "entropy", "error_functions", "factors", "fft", "fft_real", "frequencies", "gamma_functions",
    "gates", "gathering", "generator", "grids", "histograms", "incomplete_beta",
    "incomplete_gamma", "index_tricks", "indexing", "indexing_under_vmap", "inspecting",
    "integrals", "joining", "layers", "least_squares", "linalg", "losses", "margin_losses",
    "matrix_functions", "multilabel_losses", "nan_reductions", "nn", "normalization", "norms",
    "numeric", "ordering", "padding", "patches", "philox", "polynomials", "pooling", "products",
    "quantiles", "random", "rearranging", "reduction", "rejection", "resampling", "resizing",
    "running", "sampling", "sampling_gradients", "segments", "selecting", "sequence_losses",
    "sets", "shaping", "signal", "sorting", "special", "special_matrices", "stacking",
    "statistics", "vectors", "warping", "windows",
]
