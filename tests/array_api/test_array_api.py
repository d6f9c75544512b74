"""The array API standard 2025.12: names, signatures, dtypes, special cases, and inspection.

The table of signatures is the standard's. Tests marked `peers` compare it, and the results of
every elementwise function in every dtype, with array_api_strict.
"""

import inspect
import itertools
import math
import operator

import numpy as np
import pytest
from taping import tape_gradient

import gpugrad as gg
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError

SIGNATURES = """
abs(x, /)  acos(x, /)  acosh(x, /)  add(x1, x2, /)
all(x, /, *, axis=None, keepdims=False)  any(x, /, *, axis=None, keepdims=False)
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
argmax(x, /, *, axis=None, keepdims=False)  argmin(x, /, *, axis=None, keepdims=False)
argsort(x, /, *, axis=-1, descending=False, stable=True)
asarray(obj, /, *, dtype=None, device=None, copy=None)  asin(x, /)  asinh(x, /)
astype(x, dtype, /, *, copy=True, device=None)  atan(x, /)  atan2(x1, x2, /)  atanh(x, /)
bitwise_and(x1, x2, /)  bitwise_invert(x, /)  bitwise_left_shift(x1, x2, /)
bitwise_or(x1, x2, /)  bitwise_right_shift(x1, x2, /)  bitwise_xor(x1, x2, /)
broadcast_arrays(*arrays)  broadcast_shapes(*shapes)  broadcast_to(x, /, shape)
can_cast(from_, to, /)  ceil(x, /)  clip(x, /, min=None, max=None)  concat(arrays, /, *, axis=0)
conj(x, /)  copysign(x1, x2, /)  cos(x, /)  cosh(x, /)
count_nonzero(x, /, *, axis=None, keepdims=False)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)  divide(x1, x2, /)
empty(shape, *, dtype=None, device=None)  empty_like(x, /, *, dtype=None, device=None)
equal(x1, x2, /)  exp(x, /)  expand_dims(x, /, axis=0)  expm1(x, /)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)  finfo(type, /)
flip(x, /, *, axis=None)  floor(x, /)  floor_divide(x1, x2, /)
from_dlpack(x, /, *, device=None, copy=None)  full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)  greater(x1, x2, /)
greater_equal(x1, x2, /)  hypot(x1, x2, /)  iinfo(type, /)  imag(x, /)  isdtype(dtype, kind)
isfinite(x, /)  isin(x1, x2, /, *, invert=False)  isinf(x, /)  isnan(x, /)  less(x1, x2, /)
less_equal(x1, x2, /)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
log(x, /)  log10(x, /)  log1p(x, /)  log2(x, /)  logaddexp(x1, x2, /)  logical_and(x1, x2, /)
logical_not(x, /)  logical_or(x1, x2, /)  logical_xor(x1, x2, /)  matmul(x1, x2, /)
matrix_transpose(x, /)  max(x, /, *, axis=None, keepdims=False)  maximum(x1, x2, /)
mean(x, /, *, axis=None, keepdims=False)  meshgrid(*arrays, indexing='xy')
min(x, /, *, axis=None, keepdims=False)  minimum(x1, x2, /)  moveaxis(x, source, destination, /)
multiply(x1, x2, /)  negative(x, /)  nextafter(x1, x2, /)  nonzero(x, /)  not_equal(x1, x2, /)
ones(shape, *, dtype=None, device=None)  ones_like(x, /, *, dtype=None, device=None)
permute_dims(x, /, axes)  positive(x, /)  pow(x1, x2, /)
prod(x, /, *, axis=None, dtype=None, keepdims=False)  real(x, /)  reciprocal(x, /)
remainder(x1, x2, /)  repeat(x, repeats, /, *, axis=None)  reshape(x, /, shape, *, copy=None)
result_type(*arrays_and_dtypes)  roll(x, /, shift, *, axis=None)  round(x, /)
searchsorted(x1, x2, /, *, side='left', sorter=None)  sign(x, /)  signbit(x, /)  sin(x, /)
sinh(x, /)  sort(x, /, *, axis=-1, descending=False, stable=True)  sqrt(x, /)  square(x, /)
squeeze(x, /, axis)  stack(arrays, /, *, axis=0)
std(x, /, *, axis=None, correction=0.0, keepdims=False)  subtract(x1, x2, /)
sum(x, /, *, axis=None, dtype=None, keepdims=False)  take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)  tan(x, /)  tanh(x, /)
tensordot(x1, x2, /, *, axes=2)  tile(x, repetitions, /)  tril(x, /, *, k=0)
triu(x, /, *, k=0)  trunc(x, /)  unique_all(x, /)  unique_counts(x, /)  unique_inverse(x, /)
unique_values(x, /)  unstack(x, /, *, axis=0)
var(x, /, *, axis=None, correction=0.0, keepdims=False)  vecdot(x1, x2, /, *, axis=-1)
where(condition, x1, x2, /)  zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
linalg.cholesky(x, /, *, upper=False)  linalg.cross(x1, x2, /, *, axis=-1)  linalg.det(x, /)
linalg.diagonal(x, /, *, offset=0)  linalg.eig(x, /)  linalg.eigh(x, /)  linalg.eigvals(x, /)
linalg.eigvalsh(x, /)  linalg.inv(x, /)  linalg.matmul(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')  linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol=None)  linalg.matrix_transpose(x, /)  linalg.outer(x1, x2, /)
linalg.pinv(x, /, *, rtol=None)  linalg.qr(x, /, *, mode='reduced')  linalg.slogdet(x, /)
linalg.solve(x1, x2, /)  linalg.svd(x, /, *, full_matrices=True)  linalg.svdvals(x, /)
linalg.tensordot(x1, x2, /, *, axes=2)  linalg.trace(x, /, *, offset=0, dtype=None)
linalg.vecdot(x1, x2, /, *, axis=-1)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
fft.fft(x, /, *, n=None, axis=-1, norm='backward')
fft.ifft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftn(x, /, *, s=None, axes=None, norm='backward')
fft.ifftn(x, /, *, s=None, axes=None, norm='backward')
fft.rfft(x, /, *, n=None, axis=-1, norm='backward')
fft.irfft(x, /, *, n=None, axis=-1, norm='backward')
fft.rfftn(x, /, *, s=None, axes=None, norm='backward')
fft.irfftn(x, /, *, s=None, axes=None, norm='backward')
fft.hfft(x, /, *, n=None, axis=-1, norm='backward')
fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.fftshift(x, /, *, axes=None)  fft.ifftshift(x, /, *, axes=None)
"""
METHODS = """
__abs__(self, /)  __add__(self, other, /)  __and__(self, other, /)
__array_namespace__(self, /, *, api_version=None)  __bool__(self, /)  __complex__(self, /)
__dlpack__(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
__dlpack_device__(self, /)  __eq__(self, other, /)  __float__(self, /)  __floordiv__(self, other, /)
__ge__(self, other, /)  __getitem__(self, key, /)  __gt__(self, other, /)  __index__(self, /)
__int__(self, /)  __invert__(self, /)  __iter__(self, /)  __le__(self, other, /)
__lshift__(self, other, /)  __lt__(self, other, /)  __matmul__(self, other, /)
__mod__(self, other, /)  __mul__(self, other, /)  __ne__(self, other, /)  __neg__(self, /)
__or__(self, other, /)  __pos__(self, /)  __pow__(self, other, /)  __radd__(self, other, /)
__rand__(self, other, /)  __rfloordiv__(self, other, /)  __rlshift__(self, other, /)
__rmatmul__(self, other, /)  __rmod__(self, other, /)  __rmul__(self, other, /)
__ror__(self, other, /)  __rpow__(self, other, /)  __rrshift__(self, other, /)
__rshift__(self, other, /)  __rsub__(self, other, /)  __rtruediv__(self, other, /)
__rxor__(self, other, /)  __setitem__(self, key, value, /)  __sub__(self, other, /)
__truediv__(self, other, /)  __xor__(self, other, /)
to_device(self, device, /, *, stream=None)
"""


def _entries(table):
    """(name, signature) of every ``name(parameters)`` of a table."""
    entries = [e.strip().partition("(") for e in table.replace(")", ")\n").splitlines()]
    return [(name, _signature(rest.rstrip(")"))) for name, _, rest in entries if name]


def _signature(parameters):
    scope = {}
    exec(f"def f({parameters}): pass", scope)
    return inspect.signature(scope["f"])


def _of(namespace, name):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def assert_accepts(ours, standard):
    """Every call that the standard allows must work; other calls may work too."""
    takes = list(ours.parameters.values())
    by_name = {p.name: p for p in takes}
    for place, p in enumerate(standard.parameters.values()):
        if p.kind is p.VAR_POSITIONAL:
            assert takes[place].kind is p.VAR_POSITIONAL
            continue
        parameter = takes[place] if p.kind is p.POSITIONAL_ONLY else by_name[p.name]
        if p.kind is not p.KEYWORD_ONLY:
            assert parameter is takes[place]
            assert parameter.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        if p.kind is not p.POSITIONAL_ONLY:
            assert parameter.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
        if p.default is not p.empty:
            assert parameter.default == p.default
    beyond = takes[len(standard.parameters) :]
    names = set(standard.parameters)
    assert all(p.default is not p.empty or p.name in names for p in beyond if p.kind not in (2, 4))


@pytest.mark.parametrize(("name", "standard"), _entries(SIGNATURES), ids=lambda v: str(v)[:40])
def test_function_accepts_the_standard_signature(name, standard):
    assert_accepts(inspect.signature(_of(gg, name)), standard)


@pytest.mark.parametrize(("name", "standard"), _entries(METHODS), ids=lambda v: str(v)[:40])
def test_method_accepts_the_standard_signature(name, standard):
    assert_accepts(inspect.signature(getattr(gg.Tensor, name)), standard)


@pytest.mark.parametrize("name", ["dtype", "device", "mT", "ndim", "shape", "size", "T"])
def test_tensor_has_the_attributes_of_the_standard(name):
    assert hasattr(gg.ones((2, 3)), name)


def test_constants():
    assert (gg.e, gg.pi, gg.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(gg.nan)
    assert gg.newaxis is None


# ---- the namespace --------------------------------------------------------------------------


def test_tensor_returns_its_namespace():
    x = gg.ones(2)
    assert x.__array_namespace__() is gg
    for version in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is gg
    with pytest.raises(ValueError, match="no version '2019"):
        x.__array_namespace__(api_version="2019.1")
    assert gg.__array_api_version__ == "2025.12"
    assert gg.__name__ == "gpugrad"


def test_namespace_describes_itself():
    info = gg.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64
    }  # fmt: skip
    assert info.default_device() == "cpu"
    assert "cpu" in info.devices()
    assert type(info.devices()) is tuple
    defaults = info.default_dtypes()
    assert defaults["real floating"] == gg.asarray(1.0).dtype
    assert defaults["complex floating"] == gg.asarray(1j).dtype
    assert defaults["integral"] == gg.asarray(1).dtype
    assert defaults["indexing"] == gg.argmax(gg.ones(2)).dtype
    assert info.default_dtypes(device="cpu") == defaults


def test_dtypes_of_the_namespace_are_those_of_its_tensors():
    every = gg.__array_namespace_info__().dtypes()
    assert len(every) == 13
    for name, dtype in every.items():
        assert getattr(gg, name) is dtype  # looked up by hash elsewhere
        assert gg.zeros(1, dtype=dtype).dtype is dtype
        assert {dtype: 1}[gg.zeros(1, dtype=dtype).dtype] == 1
    names = gg.__array_namespace_info__().dtypes(kind=("bool", "signed integer"))
    assert set(names) == {"bool", "int8", "int16", "int32", "int64"}
    with pytest.raises(ArgumentError, match="'text' is not a kind"):
        gg.__array_namespace_info__().dtypes(kind="text")


# ---- dtypes ---------------------------------------------------------------------------------

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
EVERY = ("bool", *INTEGERS, *FLOATS, *COMPLEX)


def test_finfo_returns_python_numbers():
    for name, eps in (("float32", 2.0**-23), ("float64", 2.0**-52), ("complex64", 2.0**-23),
                      ("float16", 2.0**-10), ("bfloat16", 2.0**-7)):  # fmt: skip
        info = gg.finfo(getattr(gg, name, name))
        assert info.eps == eps
        assert {type(v) for v in (info.eps, info.max, info.min, info.smallest_normal)} == {float}
        assert type(info.bits) is int
    assert gg.finfo(gg.complex128).dtype is gg.float64
    assert gg.finfo(gg.ones(2)).dtype is gg.float32
    assert gg.finfo(np.float64).max == np.finfo(np.float64).max
    with pytest.raises(DTypeError, match="iinfo"):
        gg.finfo(gg.int8)


def test_iinfo_returns_python_numbers():
    info = gg.iinfo(gg.uint64)
    assert (info.max, info.min, info.bits, info.dtype) == (2**64 - 1, 0, 64, gg.uint64)
    assert type(info.max) is int
    assert gg.iinfo(gg.zeros(1, dtype="int8")).min == -128
    with pytest.raises(DTypeError, match="finfo"):
        gg.iinfo("float32")


@pytest.mark.parametrize("kind", ["bool", "signed integer", "unsigned integer", "integral",
                                  "real floating", "complex floating", "numeric"])  # fmt: skip
@pytest.mark.parametrize("name", EVERY)
def test_isdtype_equals_numpy(name, kind):
    dtype = np.dtype(name)
    assert gg.isdtype(dtype, kind) is np.isdtype(dtype, kind)
    assert gg.isdtype(dtype, (kind, dtype)) is True


def test_isdtype_supports_half_precision_and_refuses_unknown_kinds():
    assert gg.isdtype(gg.bfloat16, "real floating")
    assert gg.isdtype(gg.float16, "numeric")
    assert not gg.isdtype(gg.bfloat16, gg.float16)
    with pytest.raises(ValueError, match="'text' is not a kind"):
        gg.isdtype(gg.float32, "text")


@pytest.mark.parametrize(("a", "b"), list(itertools.product(EVERY, EVERY)))
def test_promotion_is_one_rule_everywhere(a, b):
    expected = np.promote_types(a, b)
    x, y = gg.ones(2, dtype=a), gg.ones(2, dtype=b)
    assert gg.result_type(x, y) == gg.result_type(np.dtype(a), b) == expected
    assert gg.promote_types(a, b) == expected
    assert gg.can_cast(a, b) is np.can_cast(a, b)
    if a != "bool" or b != "bool":
        for function in (gg.add, gg.multiply, gg.where):
            args = (x, y) if function is not gg.where else (x > 0, x, y)
            assert function(*args).dtype == expected, function
    assert gg.equal(x, y).dtype == gg.bool


NUMBERS = {"b": (True,), "i": (2, True), "u": (2, True), "f": (2, 2.5, True), "c": (2, 2.5, 1j)}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("symbol", [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift",
    "rshift", "lt", "eq",
])  # fmt: skip
def test_python_numbers_take_the_dtype_of_the_tensor(symbol, name):
    x, run = gg.ones(2, dtype=name), getattr(operator, symbol)
    plain = np.ones(2, name)
    for number in NUMBERS[x.dtype.kind]:
        for args in ((x, number), (number, x)):
            bare = [plain if a is x else a for a in args]
            try:
                expected = run(*bare)
            except TypeError:
                with pytest.raises(TypeError):
                    run(*args)
                continue
            result = run(*args)
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result.numpy(), expected)
    assert gg.result_type(x, *NUMBERS[x.dtype.kind]) == x.dtype


SUMS = {n: "uint64" if n.startswith("u") else "int64" for n in ("bool", *INTEGERS)}
SUMS.update({n: n for n in (*FLOATS, *COMPLEX)})


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("function", [gg.sum, gg.prod, gg.cumulative_sum, gg.cumulative_prod])
def test_sums_of_small_integers_do_not_overflow(function, name):
    x = gg.ones(3, dtype=name)
    assert function(x).dtype == SUMS[name]
    for dtype in EVERY:
        if np.dtype(name).kind == "c" and np.dtype(dtype).kind != "c":
            with pytest.raises(DTypeError, match="real"):
                function(x, dtype=dtype)
        elif dtype != "bool":
            result = function(x, dtype=dtype)
            assert result.dtype == dtype
            assert result.numpy().ravel()[-1] == (3 if "sum" in function.__name__ else 1)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_sums_of_half_precision_are_computed_in_the_requested_dtype(half):
    x = gg.astype(gg.full(3000, 0.1, dtype=gg.float64), half)
    assert gg.sum(x).dtype == x.dtype
    exact = float(np.asarray(x.numpy(), np.float64).sum())
    assert gg.sum(x, dtype=gg.float32).dtype == gg.float32
    assert gg.sum(x, dtype=gg.float64).item() == pytest.approx(exact, rel=1e-12)
    assert gg.sum(x).item() == pytest.approx(exact, rel=4e-3)


@pytest.mark.parametrize("function", [gg.sum, gg.prod, gg.cumulative_sum, gg.cumulative_prod])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_gradient_of_a_sum_in_another_dtype_has_the_input_dtype(function, dtype):
    x = gg.asarray(np.array([1.0, 2.0, 3.0]))
    got = tape_gradient(lambda x: gg.real(gg.sum(function(x, dtype=dtype))), x)
    assert got.dtype == gg.float64
    assert got.tolist() == gg.grad(lambda x: gg.sum(function(x)))(x).tolist()


def test_std_and_var_accept_correction_and_ddof():
    x = np.arange(6.0).reshape(2, 3)
    for function, numpys in ((gg.std, np.std), (gg.var, np.var)):
        assert function(x, axis=0, correction=1).tolist() == numpys(x, axis=0, ddof=1).tolist()
        assert function(x, axis=0, ddof=1).tolist() == numpys(x, axis=0, ddof=1).tolist()
        gradients = [gg.grad(lambda x, f=function, k=k: gg.sum(f(x, axis=1, **k)))(gg.asarray(x))
                     for k in ({"correction": 0.5}, {"ddof": 0.5})]  # fmt: skip
        assert gradients[0].tolist() == gradients[1].tolist()


# ---- special cases --------------------------------------------------------------------------

INF, NAN = math.inf, math.nan
TINY = 5e-324
SPECIAL = {
    "abs": [(NAN, NAN), (-0.0, 0.0), (-INF, INF)],
    "acos": [(NAN, NAN), (1.5, NAN), (-1.5, NAN), (1.0, 0.0)],
    "acosh": [(NAN, NAN), (0.5, NAN), (1.0, 0.0), (INF, INF)],
    "asin": [(NAN, NAN), (1.5, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "atan": [(-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2)],
    "atanh": [(1.5, NAN), (-1.5, NAN), (-1.0, -INF), (1.0, INF), (-0.0, -0.0)],
    "ceil": [(-0.5, -0.0), (INF, INF), (-0.0, -0.0), (NAN, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "cosh": [(-0.0, 1.0), (INF, INF), (-INF, INF)],
    "exp": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN)],
    "expm1": [(-0.0, -0.0), (INF, INF), (-INF, -1.0)],
    "floor": [(-0.0, -0.0), (INF, INF), (NAN, NAN)],
    "log": [(-1.0, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log1p": [(-2.0, NAN), (-1.0, -INF), (-0.0, -0.0), (INF, INF)],
    "log2": [(-1.0, NAN), (0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log10": [(-1.0, NAN), (0.0, -INF), (1.0, 0.0), (INF, INF)],
    "reciprocal": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
    "round": [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (INF, INF), (-0.0, -0.0)],
    "sign": [(-3.0, -1.0), (0.0, 0.0), (-0.0, 0.0), (NAN, NAN), (INF, 1.0)],
    "sin": [(-0.0, -0.0), (INF, NAN)],
    "sinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "sqrt": [(-1.0, NAN), (-0.0, -0.0), (INF, INF)],
    "tan": [(-0.0, -0.0), (INF, NAN)],
    "tanh": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "trunc": [(-0.5, -0.0), (INF, INF), (-0.0, -0.0)],
    "isfinite": [(INF, False), (NAN, False), (1.0, True)],
    "isinf": [(-INF, True), (NAN, False)],
    "isnan": [(NAN, True), (INF, False)],
    "signbit": [(-0.0, True), (0.0, False), (-INF, True)],
    "add": [(INF, -INF, NAN), (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (INF, 1.0, INF)],
    "atan2": [(0.0, -0.0, math.pi), (-0.0, -0.0, -math.pi), (0.0, 0.0, 0.0), (1.0, INF, 0.0),
              (INF, INF, math.pi / 4), (INF, -INF, 3 * math.pi / 4), (1.0, NAN, NAN)],
    "copysign": [(1.0, -0.0, -1.0), (-INF, 0.0, INF), (NAN, -1.0, NAN)],
    "divide": [(0.0, 0.0, NAN), (INF, INF, NAN), (1.0, 0.0, INF), (1.0, -0.0, -INF),
               (-1.0, INF, -0.0)],
    "floor_divide": [(NAN, 1.0, NAN), (0.0, 0.0, NAN), (0.0, -1.0, -0.0), (1.0, INF, 0.0),
                     (-1.0, INF, -1.0)],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (0.0, -2.0, 2.0), (NAN, 1.0, NAN)],
    "logaddexp": [(NAN, 1.0, NAN), (INF, 1.0, INF), (-INF, -INF, -INF)],
    "maximum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, 1.0, INF)],
    "minimum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (-INF, 1.0, -INF)],
    "multiply": [(INF, 0.0, NAN), (-1.0, 0.0, -0.0), (INF, -1.0, -INF)],
    "pow": [(NAN, 0.0, 1.0), (1.0, NAN, 1.0), (0.5, INF, 0.0), (2.0, INF, INF), (-0.0, -3.0, -INF),
            (-0.0, 3.0, -0.0), (-INF, 3.0, -INF), (-INF, -2.0, 0.0), (-1.0, INF, 1.0),
            (-2.0, 0.5, NAN), (0.0, -1.0, INF)],
    "remainder": [(INF, 1.0, NAN), (1.0, 0.0, NAN), (-0.0, 1.0, 0.0), (1.0, INF, 1.0),
                  (-1.0, INF, INF), (0.0, -1.0, -0.0)],
    "nextafter": [(0.0, 1.0, TINY), (NAN, 1.0, NAN), (1.0, 1.0, 1.0)],
    "sum": [([], 0.0), ([NAN, 1.0], NAN)],
    "prod": [([], 1.0), ([NAN, 0.0], NAN)],
    "mean": [([], NAN), ([INF, -INF], NAN)],
    "max": [([1.0, NAN], NAN)], "min": [([1.0, NAN], NAN)],
    "any": [([], False), ([NAN], True)], "all": [([], True), ([0.0, NAN], False)],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SPECIAL)
def test_special_case(name):
    for *args, expected in SPECIAL[name]:
        result = getattr(gg, name)(*(gg.asarray(a, dtype=gg.float64) for a in args)).item()
        if type(expected) is bool or math.isnan(expected):
            assert result is expected or (result != result and expected != expected), args
        else:
            assert result == pytest.approx(expected, rel=1e-15), args
            assert math.copysign(1.0, result) == math.copysign(1.0, expected), args


# ---- creation -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda **k: gg.arange(3, **k), lambda **k: gg.asarray([1, 2], **k),
    lambda **k: gg.empty((2,), **k), lambda **k: gg.empty_like(gg.ones(2), **k),
    lambda **k: gg.eye(2, **k), lambda **k: gg.full((2,), 3, **k),
    lambda **k: gg.full_like(gg.ones(2), 3, **k), lambda **k: gg.linspace(0, 1, 3, **k),
    lambda **k: gg.ones(2, **k), lambda **k: gg.ones_like(gg.ones(2), **k),
    lambda **k: gg.zeros((2, 3), **k), lambda **k: gg.zeros_like(gg.ones(2), **k),
], ids=["arange", "asarray", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones",
        "ones_like", "zeros", "zeros_like"])  # fmt: skip
def test_creation_takes_dtype_and_device(make, cuda):
    for dtype in (gg.float64, "int8", np.float32, np.dtype("complex64")):
        assert make(dtype=dtype).dtype == np.dtype(dtype)
    for device in ("cpu", gg.device("cpu"), cuda):
        assert make(device=device).device == device


def test_default_dtypes_of_creation():
    assert gg.zeros(1).dtype == gg.eye(1).dtype == gg.linspace(0, 1, 2).dtype == gg.float32
    assert gg.linspace(0, 1j, 2).dtype == gg.complex64
    assert [gg.full(1, v).dtype.name for v in (True, 2, 2.0, 2j)] == [
        "bool", "int64", "float32", "complex64",
    ]  # fmt: skip
    assert gg.arange(3).dtype == gg.int64
    assert gg.arange(3.0).dtype == gg.float32


def test_full_keeps_full_precision():
    assert gg.full((), 0.1, dtype=gg.float64).item() == 0.1
    assert gg.full((), 2**64 - 1, dtype=gg.uint64).item() == 2**64 - 1
    assert gg.full_like(gg.ones(1, dtype=gg.float64), 0.1).item() == 0.1
    with pytest.raises(DTypeError, match="complex"):
        gg.full(2, 1j, dtype=gg.float32)
    with pytest.raises(ShapeError, match="one number"):
        gg.full(2, [1.0, 2.0])


def test_creation_from_tensors_is_differentiable():
    x = gg.asarray(np.array([2.0, 5.0]))
    got = gg.grad(lambda x: gg.sum(gg.full((2, 3), x[0]) ** 2))(x)
    assert got.tolist() == [24.0, 0.0]
    got = gg.grad(lambda x: gg.sum(gg.linspace(x[0], x[1], 3)))(x)
    assert got.tolist() == [1.5, 1.5]
    assert gg.linspace(x[0], 8.0, 4).tolist() == [2.0, 4.0, 6.0, 8.0]
    assert gg.linspace(x[0], 8.0, 3, endpoint=False).tolist() == [2.0, 4.0, 6.0]


def test_asarray_follows_its_copy_argument():
    for dtype in ("float32", "bool", "int64"):
        x = gg.ones(2, dtype=dtype)
        assert gg.asarray(x) is x
        assert gg.asarray(x, copy=False) is x
        other = gg.asarray(x, copy=True)
        other[0] = 0
        assert x.tolist() == [1, 1]
    a = np.ones(2)
    shared = gg.asarray(a, copy=False)
    copied = gg.asarray(a)
    a[0] = 5.0
    assert (shared.tolist(), copied.tolist()) == ([5.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="copy=False"):
        gg.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        gg.asarray(x, dtype=gg.float64, copy=False)


def test_asarray_accepts_scalars_buffers_and_nested_lists():
    assert gg.asarray(memoryview(b"\1\2")).tolist() == [1, 2]
    assert gg.asarray(np.float64(2.0)).dtype == gg.float64
    assert gg.asarray([[True], [False]]).dtype == gg.bool
    assert gg.asarray([1, 2.5, 1j]).dtype == gg.complex64
    with pytest.raises(TypeError):
        gg.asarray(10**40)


# ---- other shapes of arguments --------------------------------------------------------------


def test_several_results_are_a_tuple():
    for result in (gg.broadcast_arrays(gg.ones(2), 1.0), gg.meshgrid(gg.ones(2), gg.ones(3)),
                 gg.unstack(gg.ones((2, 3))), gg.nonzero(gg.ones(2))):  # fmt: skip
        assert isinstance(result, tuple)


def test_axes_may_be_negative_or_several():
    x = gg.ones((2, 3, 4))
    assert gg.expand_dims(x, axis=(0, -1)).shape == (1, 2, 3, 4, 1)
    assert gg.permute_dims(x, (-1, 0, 1)).shape == (4, 2, 3)
    assert gg.squeeze(gg.ones((1, 2, 1)), (0, 2)).shape == (2,)
    assert gg.searchsorted(gg.asarray([1.0, 2.0]), 1.5).item() == 1
    assert gg.searchsorted(gg.asarray([1, 2]), 2, side="right").item() == 2


def test_cumsum_without_axis_flattens_as_in_numpy():
    x = np.arange(1.0, 5.0).reshape(2, 2)
    assert gg.cumsum(x).tolist() == np.cumsum(x).tolist()
    assert gg.cumprod(x, 1).tolist() == np.cumprod(x, 1).tolist()
    with pytest.raises(AxisError, match="axis= is needed"):
        gg.cumulative_sum(x)


def test_round_keeps_decimals():
    assert gg.round([1.25, -2.35], 1).tolist() == pytest.approx([1.2, -2.4])
    assert round(gg.asarray(1234.5), -2).item() == 1200.0
    assert gg.round(gg.asarray([7, 8])).dtype == gg.int64


@pytest.mark.parametrize("mutate", [
    lambda x: x.__setitem__(x > 1, 0.0), lambda x: x.__setitem__((x > 1)[0], 5.0),
    lambda x: x.__setitem__((slice(None), [0, 2]), 7.0),
    lambda x: x.__setitem__(([0, 1], [2, 0]), 9.0), lambda x: x.__setitem__(..., 1.0),
    lambda x: x.__setitem__((None, 0), 2.0), lambda x: x.__setitem__((0, -1), 3.0),
], ids=["mask", "row mask", "columns", "pairs", "ellipsis", "newaxis", "element"])  # fmt: skip
def test_setitem_equals_numpy(mutate):
    a = np.arange(6.0).reshape(2, 3)
    x = gg.asarray(a)
    if mutate.__code__.co_consts.count(5.0):
        a, x = a[:, :2], x[:, :2]
    a = a.copy()
    mutate(x)
    mutate(a)
    assert x.tolist() == a.tolist()


def test_in_place_operators_are_differentiable():
    x = gg.asarray([1.0, 2.0])
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = x + 0
        y += 1.0
        y *= y
        y -= x
        y /= 2.0
        y **= 2
    assert x.tolist() == [1.0, 2.0]
    assert y.dtype == gg.float32
    assert tape.gradient(y, x).tolist() == [4.5, 17.5]


# ---- DLPack ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*EVERY, "float16"])
def test_dlpack_round_trip_keeps_dtype_and_values(name):
    x = gg.asarray(np.ones((2, 3), name))
    assert x.__dlpack_device__() == (1, 0)
    there = np.from_dlpack(x)
    assert there.dtype == name
    back = gg.from_dlpack(there)
    assert back.dtype == name
    assert back.tolist() == x.tolist()


class _Lent:
    """An array that NumPy reads from a capsule."""

    def __init__(self, x, capsule):
        self.x, self.capsule = x, capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_dlpack_shares_memory_read_only():
    x = gg.ones(3)
    there = np.from_dlpack(x)
    assert np.shares_memory(there, x._data)
    assert not there.flags.writeable
    old = x.__dlpack__()  # the older protocol has no read-only flag, so it gets a copy
    assert "dltensor" in repr(old)
    for refused in (gg.broadcast_to(x, (2, 3)), gg.Variable(x)):
        with pytest.raises(BufferError, match=r"read-only|copy\(\)"):
            refused.__dlpack__(copy=False)
    for view in (x, x[1:], x.reshape(3, 1).T[0]):  # without a copy an older library may write
        capsule = view.__dlpack__(copy=False)
        there = np.from_dlpack(_Lent(view, capsule))
        assert np.shares_memory(there, x._data)
        x += 1.0
        assert view.tolist() == there.tolist()
        assert gg.grad(lambda x: gg.sum(x * x))(x).tolist() == (2 * x).tolist()
    a = np.ones(3)
    shared, own = gg.from_dlpack(a), gg.from_dlpack(a, copy=True)
    a[0] = 2.0
    assert (shared.tolist()[0], own.tolist()[0]) == (2.0, 1.0)
    shared[0] = own[0] = 7.0
    assert a[0] == 7.0


def test_dlpack_never_cuts_a_gradient_silently():
    x = gg.ones(3)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DTypeError, match="cut its gradient"):
            np.from_dlpack(x)
    assert gg.from_dlpack(x) is x
    v = gg.Variable([1.0, 2.0])
    read = gg.from_dlpack(v)
    v.assign([5.0, 6.0])
    assert read.tolist() == [1.0, 2.0], "a read is a value of its own"
    assert gg.grad(lambda x: gg.sum(gg.from_dlpack(x, copy=True) ** 2))(x).tolist() == [2.0] * 3


def test_from_dlpack_refuses_what_it_cannot_read(cuda):
    with pytest.raises(DTypeError, match="list has no __dlpack__"):
        gg.from_dlpack([1.0])

    class Elsewhere:
        def __dlpack__(self, **keywords):
            raise AssertionError

        def __dlpack_device__(self, /):
            return (10, 0)

    with pytest.raises(gg.errors.DeviceError, match="kind 10"):
        gg.from_dlpack(Elsewhere())
    assert gg.from_dlpack(np.ones(2), device=cuda).device == cuda
    with pytest.raises(ArgumentError, match="copy=False"):
        gg.from_dlpack(np.ones(2), device=cuda, copy=False)


def test_cuda_array_interface_exists_on_gpu_tensors_only():
    assert not hasattr(gg.ones(2), "__cuda_array_interface__")


# ---- comparison with the reference implementation -------------------------------------------


@pytest.fixture(scope="module")
def strict():
    module = pytest.importorskip("array_api_strict")
    module.set_array_api_strict_flags(api_version="2025.12")
    return module


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_table_of_signatures_is_complete(strict):
    ours = dict(_entries(SIGNATURES))
    homes = {"": strict, "linalg.": strict.linalg, "fft.": strict.fft}
    for prefix, home in homes.items():
        for name in home.__all__:
            function = getattr(home, name)
            if inspect.isfunction(function) and "strict" not in name and name[0] != "_":
                standard = inspect.signature(function).parameters.values()
                listed = ours[prefix + name].parameters.values()
                assert [p.kind for p in standard] == [p.kind for p in listed], name
                if prefix + name != "expand_dims":
                    assert [p.name for p in standard] == [p.name for p in listed], name


UNARY = [n for n, s in _entries(SIGNATURES) if list(s.parameters) == ["x"] and "." not in n]
BINARY = [n for n, s in _entries(SIGNATURES) if list(s.parameters) == ["x1", "x2"] and "." not in n]


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_results_and_dtypes_equal_the_reference_implementation(strict, name):
    rng = np.random.default_rng(0)
    n = 1 if name in UNARY else 2
    for dtypes in itertools.product(EVERY, repeat=n):
        arrays = [np.asarray(rng.integers(1, 4, (3, 3))).astype(d) for d in dtypes]
        try:
            expected = getattr(strict, name)(*(strict.asarray(a) for a in arrays))
        except (TypeError, np.linalg.LinAlgError):  # what the standard leaves open
            continue
        result = getattr(gg, name)(*(gg.asarray(a) for a in arrays))
        several = isinstance(expected, tuple)
        for e, m in zip(expected if several else (expected,), result if several else (result,),
                        strict=True):  # fmt: skip
            assert m.dtype.name == str(e.dtype).rpartition(".")[2], dtypes
            np.testing.assert_allclose(m.numpy(), np.asarray(e), rtol=1e-6, equal_nan=True)
