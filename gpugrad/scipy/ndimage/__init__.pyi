# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from typing import Any

__all__: list[str]

def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: Any = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The spline at ``matrix @ index + offset``; differentiable by `matrix` and `offset` too."""

def binary_closing(
    input: Any,
    structure: Any = None,
    iterations: Any = 1,
    output: Any = None,
    origin: Any = 0,
    mask: Any = None,
    border_value: Any = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def binary_dilation(
    input: Any,
    structure: Any = None,
    iterations: Any = 1,
    mask: Any = None,
    output: Any = None,
    border_value: Any = 0,
    origin: Any = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def binary_erosion(
    input: Any,
    structure: Any = None,
    iterations: Any = 1,
    mask: Any = None,
    output: Any = None,
    border_value: Any = 0,
    origin: Any = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def binary_fill_holes(
    input: Any, structure: Any = None, output: Any = None, origin: Any = 0, *, axes: Any = None
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def binary_hit_or_miss(
    input: Any,
    structure1: Any = None,
    structure2: Any = None,
    output: Any = None,
    origin1: Any = 0,
    origin2: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def binary_opening(
    input: Any,
    structure: Any = None,
    iterations: Any = 1,
    output: Any = None,
    origin: Any = 0,
    mask: Any = None,
    border_value: Any = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def binary_propagation(
    input: Any,
    structure: Any = None,
    mask: Any = None,
    output: Any = None,
    border_value: Any = 0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def black_tophat(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The closing minus the input: the valleys narrower than the window."""

def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean position of the elements with each label, weighted by their values."""

def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Convolution with weights; differentiable by `input`, `weights` and `cval`."""

def convolve1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    """Convolution with weights along an axis; differentiable by `input`, `weights` and `cval`."""

def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Correlation with weights; differentiable by `input`, `weights` and `cval`."""

def correlate1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    """Correlation with weights along an axis; differentiable by `input`, `weights` and `cval`."""

def distance_transform_bf(
    input: Any,
    metric: str = "euclidean",
    sampling: Any = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Any = None,
    indices: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def distance_transform_cdt(
    input: Any,
    metric: str = "chessboard",
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Any = None,
    indices: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def distance_transform_edt(
    input: Any,
    sampling: Any = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Any = None,
    indices: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def extrema(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Minima and maxima, which are differentiable, and their positions."""

def find_objects(input: Any, max_label: Any = 0) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def fourier_ellipsoid(
    input: Any, size: Any, n: Any = -1, axis: Any = -1, output: Any = None
) -> Any:
    """The transform of the mean over an ellipsoid; differentiable by `input` and `size`."""

def fourier_gaussian(
    input: Any, sigma: Any, n: Any = -1, axis: Any = -1, output: Any = None
) -> Any:
    """The transform of a Gaussian filter; differentiable by `input` and `sigma`."""

def fourier_shift(input: Any, shift: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Any:
    """The transform of a shift; differentiable by `input` and `shift`."""

def fourier_uniform(input: Any, size: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Any:
    """The transform of a filter of means; differentiable by `input` and `size`."""

def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """Gaussian filter along each axis; differentiable by `input`, `sigma` and `cval`."""

def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: Any = -1,
    order: Any = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """Gaussian filter along an axis; differentiable by `input`, `sigma` and `cval`."""

def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The gradient's magnitude by Gaussian derivatives; differentiable by `sigma` too."""

def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """Laplace filter of Gaussian second derivatives; differentiable by `sigma` too."""

def generate_binary_structure(rank: Any, connectivity: Any) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def generic_filter(
    input: Any,
    function: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """A filter whose values `function` computes of each window, a vector."""

def generic_filter1d(
    input: Any,
    function: Any,
    filter_size: Any,
    axis: Any = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def generic_gradient_magnitude(
    input: Any,
    derivative: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """The root of the sum of squared derivatives, computed by `derivative` for each axis."""

def generic_laplace(
    input: Any,
    derivative2: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """The sum of second derivatives, computed by `derivative2` for each axis."""

def geometric_transform(
    input: Any,
    mapping: Any,
    output_shape: Any = None,
    output: Any = None,
    order: Any = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
) -> Any:
    """The spline at ``mapping(index)``, a tuple of numbers or Tensors for each index of the
    result.
    """

def grey_closing(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The erosion of the dilation: valleys narrower than the window go."""

def grey_dilation(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The maximum of each reflected window plus `structure`; differentiable by both."""

def grey_erosion(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The minimum of each window minus `structure`; differentiable by both."""

def grey_opening(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The dilation of the erosion: peaks narrower than the window go."""

def histogram(
    input: Any, min: Any, max: Any, bins: Any, labels: Any = None, index: Any = None
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def iterate_structure(structure: Any, iterations: Any, origin: Any = None) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def label(input: Any, structure: Any = None, output: Any = None) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def labeled_comprehension(
    input: Any,
    labels: Any,
    index: Any,
    func: Any,
    out_dtype: Any,
    default: Any,
    pass_positions: bool = False,
) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def laplace(
    input: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Any:
    """Laplace filter of second differences; differentiable by `input` and `cval`."""

def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: Any = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The spline at coordinates; differentiable by `input`, `coordinates` and `cval`."""

def maximum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The greatest element with each label; 0 if there is none. Equal elements share the
    gradient.
    """

def maximum_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The greatest element of each window. Equal elements share the gradient."""

def maximum_filter1d(
    input: Any,
    size: Any,
    axis: Any = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    """The greatest element of each window along an axis. Equal elements share the gradient."""

def maximum_position(input: Any, labels: Any = None, index: Any = None) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def mean(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean of the elements with each label; NaN if there are none."""

def median(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The median of the elements with each label; NaN if there are none."""

def median_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The median of each window; of an even number, the upper of the two in the middle."""

def minimum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The least element with each label; 0 if there is none. Equal elements share the gradient."""

def minimum_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The least element of each window. Equal elements share the gradient."""

def minimum_filter1d(
    input: Any,
    size: Any,
    axis: Any = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    """The least element of each window along an axis. Equal elements share the gradient."""

def minimum_position(input: Any, labels: Any = None, index: Any = None) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def morphological_gradient(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The dilation minus the erosion."""

def morphological_laplace(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The dilation plus the erosion minus twice the input."""

def percentile_filter(
    input: Any,
    percentile: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The element of each window at a percentile, which has no gradient; negative from 100."""

def prewitt(
    input: Any, axis: Any = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0
) -> Any:
    """Prewitt filter; differentiable by `input` and `cval`."""

def rank_filter(
    input: Any,
    rank: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The element of each window at a place in ascending order; negative from the greatest."""

def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: Any = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The rotation by an angle in degrees in the plane of two axes; differentiable by `angle`
    too.
    """

def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: Any = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The spline at ``index - shift``; differentiable by `input`, `shift` and `cval`."""

def sobel(
    input: Any, axis: Any = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0
) -> Any:
    """Sobel filter; differentiable by `input` and `cval`."""

def spline_filter(input: Any, order: Any = 3, output: Any = ..., mode: str = "mirror") -> Any:
    """Coefficients of the spline through the elements, along all axes."""

def spline_filter1d(
    input: Any, order: Any = 3, axis: Any = -1, output: Any = ..., mode: str = "mirror"
) -> Any:
    """Coefficients of the spline through the elements along an axis; differentiable by `input`."""

def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The root of the variance."""

def sum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The old name of `sum_labels`."""

def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The sum of the elements with each label."""

def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Means of windows along each axis; differentiable by `input` and `cval`."""

def uniform_filter1d(
    input: Any,
    size: Any,
    axis: Any = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    """Means of windows along an axis; differentiable by `input` and `cval`."""

def value_indices(arr: Any, *, ignore_value: Any = None) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def variance(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The variance of the elements with each label."""

def vectorized_filter(
    input: Any,
    function: Any,
    *,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = None,
    origin: Any = None,
    axes: Any = None,
    batch_memory: Any = 1073741824,
) -> Any:
    """A filter whose values ``function(windows, axis=...)`` computes of all windows together."""

def watershed_ift(input: Any, markers: Any, structure: Any = None, output: Any = None) -> Any:
    """SciPy's function of its name on either device; raises under a tape."""

def white_tophat(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The input minus its opening: the peaks narrower than the window."""

def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: Any = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """The spline on a finer or coarser grid. `zoom` only gives the shape: it has no gradient."""
