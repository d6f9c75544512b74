"""Attributes that Tensors and tapes have in other libraries and lack here.

The names must be known when the classes are created. What to write here is looked up when
one is asked for.
"""

SENTENCES = {
    "a Tensor": """
    bfloat16: Call x.astype(gg.{name}).
    bool float int type: Call x.astype(dtype).
    byte double half long short type_as: Call x.astype(dtype), as x.astype(gg.float64).
    add addmm add_ sub sub_ mul mul_ div div_ pow pow_ neg mm mv bmm eq ne lt gt le ge: Write
        operators: x + y, x @ y, x < y; x += y writes to x.
    abs_ clamp_ detach_ exp_ index_add_ masked_fill_ relu_ scatter_ scatter_add_ squeeze_
        unsqueeze_: Assign the result of the function without _, or write x[i] = y.
    aval sharding weak_type: It has shape, dtype and device.
    at: Write to elements: x[i] = y and x[i] += y, which is differentiable.
    backward: Record with gg.GradientTape() as tape: tape.gradient(loss, variables) returns the
        gradients.
    block_until_ready: Call gg.cuda.synchronize().
    chunk tensor_split: Call gg.split(x, parts).
    clamp clamp_max clamp_min: Call x.clip(min, max).
    clone: Call x.copy().
    contiguous is_contiguous: It has flags; gg.numpy.ascontiguousarray copies.
    copy_: Write x[...] = y; a Variable's value is set by assign.
    cpu cuda to: Call x.to_device("cpu") or x.to_device("cuda"), or x.astype(dtype).
    data_ptr storage: Libraries read the memory by DLPack or __cuda_array_interface__.
    detach: Call gg.stop_gradient(x).
    dim rank: It has ndim.
    eval: Call x.numpy().
    expand expand_as: Call gg.broadcast_to(x, shape).
    fill_ zero_: Write x[...] = value, or v.assign(value).
    frac: Call gg.modf(x)[0].
    get_shape as_list dims: x.shape is a tuple.
    grad: Gradients are not stored: tape.gradient returns them.
    grad_fn is_leaf: tape.explain(target, source) says how a gradient flows.
    histc: Call gg.histogram(x, bins).
    index_select: Call x.take(indices, axis).
    inverse: Call gg.linalg.inv(x).
    is_complex is_floating_point: Call gg.isdtype(x.dtype, "real floating").
    is_cuda: Write x.device.kind == "cuda".
    kthvalue mode: Call gg.sort(x, axis) and index it.
    lgamma: Call gg.special.gammaln(x).
    masked_fill: Call gg.where(mask, value, x).
    masked_select: Write x[mask].
    movedim swapdims: Call gg.moveaxis(x, source, destination), or x.swapaxes(i, j).
    narrow: Write a slice: x[start:stop].
    nelement numel: It has size.
    new_empty new_full new_ones new_tensor new_zeros: Call gg.zeros(shape, x.dtype,
        device=x.device).
    normal_ uniform_ random_ bernoulli_: Call gg.random.normal(shape) and the like.
    permute: Call gg.permute_dims(x, axes), or x.transpose(axes).
    pin_memory share_memory_: gg.prefetch_to_device copies batches ahead.
    register_hook retain_grad: tape.gradient takes any Tensor as a source.
    repeat_interleave: Call x.repeat(n, axis).
    requires_grad requires_grad_: tape.watch(x) records a Tensor; Variables are watched.
    reshape_as view_as: Call x.reshape(y.shape).
    scatter: Call gg.scatter_along_axis(x, indices, values, axis).
    set_shape: Shapes are those of the values: there is nothing to set.
    stride: It has strides, in bytes.
    topk: Call gg.top_k(x, k).
    unbind: Call gg.unstack(x).
    unfold: Call gg.sliding_window_view(x, n, axis).
    unsqueeze: Call gg.expand_dims(x, axis).
    where: Call gg.where(condition, x, y).
    initialized_value initial_value: It has its value when it is created.
    initializer load: Its value is set by assign.
    scatter_nd_update batch_scatter_update: Write v[index].assign(value).
    constraint: Assign the projected value after a step.
    handle: A Variable is its own handle: v.ref() is a key.
    """,
    "a tape": """
    backward grad gradients: Call tape.gradient(loss, variables), which returns the gradients.
    hessian: Nest two tapes, or call gg.hessian(f).
    pause: Call tape.stop_recording().
    record start stop: Record within its block, with gg.GradientTape() as tape.
    vjp jvp: Call gg.vjp(f, primals) or gg.jvp(f, primals, tangents).
    watch_variable: Call tape.watch(x); a gg.Variable is watched when it is read.
    zero_grad: Gradients are not stored: tape.gradient returns them.
    """,
}
"""Names, and what to write here. Lines that go on are indented."""

OTHERS = """
    abs absolute absolute_ acos acos_ acosh acosh_ addbmm addbmm_ addcdiv addcdiv_ addcmul
    addcmul_ addmm_ addmv addmv_ addr addr_ adjoint allclose amax amin aminmax angle arccos
    arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_
    arctanh arctanh_ argwhere as_strided as_strided_ as_strided_scatter asin asin_ asinh asinh_
    atan atan2 atan2_ atan_ atanh atanh_ baddbmm baddbmm_ bernoulli bincount bitwise_and
    bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or
    bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ broadcast_to
    cast cauchy_ ccol_indices ceil ceil_ chalf char cholesky cholesky_inverse cholesky_solve
    clamp_max_ clamp_min_ clip_ coalesce col_indices concat conj_physical conj_physical_
    copysign copysign_ corrcoef cos cos_ cosh cosh_ count_nonzero cov cross cross_entropy
    crow_indices cummax cummin cumprod_ cumsum_ deg2rad deg2rad_ dense_dim dequantize det diag
    diag_embed diagflat diagonal_scatter diff digamma digamma_ dim_order dist divide divide_
    dsplit eig eigh einsum element_size elu eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp
    exp2 exp2_ expm1 expm1_ exponential_ fill_diagonal_ fix fix_ flip fliplr flipud float_power
    float_power_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac_ frexp gather
    gcd gcd_ ge_ gelu geometric_ geqrf ger get_device greater greater_ greater_equal
    greater_equal_ gt_ hardshrink heaviside heaviside_ histogram hsplit hypot hypot_ i0 i0_
    igamma igamma_ igammac igammac_ index_add index_copy index_copy_ index_fill index_fill_
    index_put index_put_ index_reduce index_reduce_ indices inner int_repr interpolate inv
    is_coalesced is_conj is_cpu is_distributed is_ipu is_maia is_meta is_mkldnn is_mps is_mtia
    is_neg is_nested is_nonzero is_pinned is_quantized is_signed is_sparse is_sparse_csr
    is_vulkan is_xpu isclose isfinite isinf isnan isneginf isposinf isreal istft kron layout lcm
    lcm_ ldexp ldexp_ le_ leaky_relu lerp lerp_ less less_ less_equal less_equal_ lgamma_ log
    log10 log10_ log1p log1p_ log2 log2_ log_ log_normal_ log_sigmoid log_softmax logaddexp
    logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not logical_not_ logical_or
    logical_or_ logical_xor logical_xor_ logit logit_ logsumexp lstsq lt_ lu lu_solve mH
    masked_scatter masked_scatter_ matmul matrix_exp matrix_power maximum median minimum
    moveaxis mse_loss msort multinomial multiply multiply_ mvlgamma mvlgamma_ nan_to_num
    nan_to_num_ nanmean nanmedian nanquantile nansum narrow_copy ndimension ne_ neg_ negative
    negative_ new_empty_strided nextafter nextafter_ nonzero_static norm not_equal not_equal_
    orgqr ormqr outer pad pinv pinverse polygamma polygamma_ positive prelu put_
    q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr
    qscheme quantile rad2deg rad2deg_ reciprocal reciprocal_ reduce_mean reduce_sum relu
    remainder remainder_ renorm renorm_ resize_ resize_as resize_as_ resolve_conj resolve_neg
    roll rot90 round_ row_indices rsqrt rsqrt_ scatter_reduce scatter_reduce_ select
    select_scatter sgn sgn_ sigmoid sigmoid_ sign sign_ signbit silu sin sin_ sinc sinc_ sinh
    sinh_ slice_scatter slogdet smm softmax softplus solve sparse_dim sparse_mask sparse_resize_
    split split_with_sizes sqrt sqrt_ square square_ sspaddmm stack stft storage_offset subtract
    subtract_ sum_to_size svd swapaxes_ swapdims_ t t_ take_along_dim tan tan_ tanh tanh_ tile
    to_dense to_mkldnn to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc
    to_sparse_csr transpose_ triangular_solve tril tril_ triu triu_ true_divide true_divide_
    trunc trunc_ unflatten unique unique_consecutive unsafe_chunk unsafe_split
    unsafe_split_with_sizes untyped_storage values vdot vsplit xlogy xlogy_ xpu
"""
"""More names: `known_as` finds what a function of that name is called here."""
