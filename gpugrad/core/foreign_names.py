"""Names of other libraries, and what they are called here: data, which `known_as` reads.

A name is looked up in the entries of its namespace, then in all namespaces and their entries. So an
entry stands under the namespace in which its answer is.
"""

NAMES = {
    "gg": """
        all = reduce_all; any = reduce_any; array_split = tensor_split
        asarray = as_tensor convert device_put from_numpy tensor
        astype = cast convert_element_type type_as; bitwise_count = population_count
        bitwise_left_shift = shift_left
        bitwise_right_shift = shift_right_logical shift_right_arithmetic
        broadcast_to = broadcast_like expand; checkpoint.load = load; checkpoint.save = save
        clip = clamp clip_by_value; concat = cat; conj = conj_physical resolve_conj
        cumulative_logsumexp = cumlogsumexp logcumsumexp; cumulative_max = cummax
        cumulative_min = cummin; cumulative_prod = cumulative_product
        custom_gradient = Function custom_vjp defvjp; data.DataLoader = DataLoader
        debug.check_numerics = add_check_numerics_ops assert_all_finite
        debug.nans = debug_nans detect_anomaly enable_check_numerics set_detect_anomaly
        device = default_device; devices = list_physical_devices local_devices
        divide = div truediv realdiv; equal = eq; expand_dims = unsqueeze; fix = truncate
        floor_divide = floordiv; full = fill; function = compile jit
        GradientTape.stop_recording = inference_mode no_grad stop_recording; greater = gt
        greater_equal = ge; hessian = hessians; histogram = histc; i0 = bessel_i0
        index_add = scatter_add_rows; inv = inverse matrix_inverse; isfinite = is_finite
        isinf = is_inf; isnan = is_nan; jacobian = jacfwd jacrev jac; jvp = make_jvp; less = lt
        less_equal = le; linalg.expm = matrix_exp; linalg.pinv = pinverse
        linalg.sqrtm = matrix_square_root; logsumexp = reduce_logsumexp
        matmul = batch_matmul bmm dot_general mm; matvec = mv; max = reduce_max
        mean = reduce_mean; min = reduce_min; mixed_precision = autocast set_global_policy
        moveaxis = movedim; multiply = mul scalar_mul; negative = neg; nn.Dense = Linear
        nn.functional = functional; nn.initializers = init; nn.Module = Module
        nn.Sequential = Sequential; not_equal = ne
        optim.clip_by_global_norm = clip_by_global_norm clip_grad_norm clip_grad_norm_
        optim.LossScaleOptimizer = GradScaler; optim.schedules = lr_scheduler
        permute_dims = permute; power = integer_pow; prod = reduce_prod; profile = profiler
        random.categorical = multinomial; random.Generator = PRNGKey; random.integers = randint
        random.normal = normal randn; random.permutation = randperm shuffle
        random.uniform = rand; recompute_grad = remat; remainder = floormod rem
        repeat = repeat_interleave; scatter_along_axis = scatter scatter_add
        segment_max = unsorted_segment_max; segment_mean = unsorted_segment_mean
        segment_min = unsorted_segment_min; segment_prod = unsorted_segment_prod
        segment_sqrt_n = unsorted_segment_sqrt_n
        segment_sum = segment_reduce unsorted_segment_sum
        set_deterministic = use_deterministic_algorithms enable_op_determinism
        set_device = set_default_device
        set_matmul_precision = default_matmul_precision set_float32_matmul_precision
        set_seed = manual_seed seed set_random_seed; shape = get_shape; sign = sgn; size = numel
        special.erfinv = erf_inv; special.expit = logistic; special.gammainc = igamma
        special.gammaincc = igammac; special.gammaln = lgamma; special.i0e = bessel_i0e
        special.i1 = bessel_i1; special.i1e = bessel_i1e; special.multigammaln = mvlgamma
        split = chunk split_with_sizes; std = reduce_std; stop_gradient = detach; subtract = sub
        sum = reduce_sum; swapaxes = swapdims; take = index_select gather_rows
        take_along_axis = take_along_dim; top_k = approx_max_k topk
        train.Checkpoints = Checkpoint CheckpointManager; train.fit = fit; trapezoid = trapz
        unstack = unbind; value_and_grad = grad_and_value value_and_gradient; var = reduce_variance
        Variable = Parameter ResourceVariable; vectorized_map = map_fn
        where = masked_fill select_n
    """,
    "gg.nn": """
        AdaptiveAvgPool2d = AdaptiveAveragePooling2d; AdaptiveMaxPool2d = AdaptiveMaxPooling2d
        AvgPool2d = AveragePooling2d; batch_norm = batch_normalization
        BatchNorm = BatchNorm2d BatchNormalization LazyBatchNorm2d
        binary_cross_entropy = BCELoss BinaryCrossentropy binary_crossentropy
        binary_cross_entropy_with_logits = sigmoid_binary_cross_entropy
        binary_cross_entropy_with_logits = sigmoid_cross_entropy_with_logits
        Conv2d = Convolution2d LazyConv2d; conv_transpose2d = conv2d_transpose
        ConvTranspose2d = Conv2dTranspose Convolution2dTranspose LazyConvTranspose2d
        Dense = LazyLinear Linear; Embedding = Embed; embedding = embedding_lookup
        GroupNorm = GroupNormalization; hardshrink = hard_shrink; hardsigmoid = hard_sigmoid
        hardswish = hard_silu hard_swish; hardtanh = hard_tanh; huber_loss = Huber
        initializers = init; InstanceNorm = InstanceNorm2d LazyInstanceNorm2d
        interpolate = resize upsample
        kl_div = KLDivergence kl_divergence kld kullback_leibler_divergence
        l1_loss = MAE MeanAbsoluteError mae mean_absolute_error
        layer_norm = layer_normalization; LayerNorm = LayerNormalization
        local_response_norm = local_response_normalization lrn; log_cosh_loss = LogCosh
        MaxPool2d = MaxPooling2d; Module = Layer Model
        mse = MSE MeanSquaredError mean_squared_error
        MultiHeadAttention = GroupQueryAttention MultiHeadDotProductAttention
        Normalize = UnitNormalization; normalize = l2_normalize; pixel_shuffle = depth_to_space
        pixel_unshuffle = space_to_depth; poisson_nll_loss = Poisson
        rms_norm = rms_normalization; RMSNorm = RMSNormalization; RNN = SimpleRNN
        RNNCell = SimpleRNNCell; scaled_dot_product_attention = dot_product_attention
        sigmoid_focal_loss = BinaryFocalCrossentropy; silu = swish
        softmax_cross_entropy = CategoricalCrossentropy categorical_crossentropy
        softmax_cross_entropy = softmax_cross_entropy_with_logits
        softshrink = soft_shrink
        sparse_softmax_cross_entropy = SparseCategoricalCrossentropy
        sparse_softmax_cross_entropy = softmax_cross_entropy_with_integer_labels
        sparse_softmax_cross_entropy = sparse_categorical_crossentropy
        sparse_softmax_cross_entropy = sparse_softmax_cross_entropy_with_logits
        squared_relu = relu_squared; tanhshrink = tanh_shrink; Threshold = ThresholdedReLU
        threshold = thresholded_relu
        TransformerBlock = TransformerDecoderLayer TransformerEncoderLayer
        Upsample = UpSampling2d UpsamplingBilinear2d UpsamplingNearest2d Resizing
    """,
    "gg.nn.initializers": """
        full = Constant; glorot_normal = xavier_normal xavier_normal_
        glorot_uniform = xavier_uniform xavier_uniform_
        he_normal = kaiming_normal kaiming_normal_
        he_uniform = kaiming_uniform kaiming_uniform_; normal = RandomNormal normal_
        ones = ones_; orthogonal = orthogonal_; truncated_normal = trunc_normal_
        uniform = RandomUniform uniform_; zeros = zeros_
    """,
    "gg.special": """
        airy = airy_ai; eval_hermite = hermite_polynomial_h; i0 = modified_bessel_i0
        eval_hermitenorm = hermite_polynomial_he; eval_laguerre = laguerre_polynomial_l
        eval_legendre = legendre_polynomial_p; i1 = modified_bessel_i1; j0 = bessel_j0
        eval_chebyt = chebyshev_polynomial_t; eval_chebyu = chebyshev_polynomial_u
        j1 = bessel_j1; k0 = modified_bessel_k0; k0e = scaled_modified_bessel_k0
        k1 = modified_bessel_k1; k1e = scaled_modified_bessel_k1; spherical_jn = spherical_bessel_j0
        y0 = bessel_y0; y1 = bessel_y1
    """,
    "gg.optim": """
        AdamW = ScheduleFreeAdamW; EMA = ExponentialMovingAverage SwapEMAWeights
        LossScaleOptimizer = GradScaler; schedules = lr_scheduler; SWA = AveragedModel swa_utils
    """,
    "gg.optim.schedules": """
        constant = ConstantLR constant_schedule
        cosine = CosineAnnealingLR CosineDecay cosine_decay_schedule cosine_onecycle_schedule
        exponential = ExponentialDecay ExponentialLR exponential_decay
        join = SequentialLR join_schedules; one_cycle = OneCycleLR
        piecewise = MultiStepLR PiecewiseConstantDecay piecewise_constant_schedule
        polynomial = PolynomialDecay PolynomialLR linear_schedule polynomial_schedule
        Schedule = LRScheduler LearningRateSchedule; step = StepLR
        warmup = LinearLR warmup_cosine_decay_schedule
    """,
    "gg.random": """
        bernoulli = bernoulli_; cauchy = standard_cauchy
        default_generator = get_global_generator
        exponential = exponential_ standard_exponential; gamma = standard_gamma
        Generator = RandomState default_rng key; integers = integer random_integers uniform_int
        lognormal = log_normal; normal = standard_normal
        student_t = standard_t t; uniform = random random_sample ranf; weibull = weibull_min
    """,
    "gg.data": """
        Arrays = ArrayDataset TensorDataset from_tensor_slices; augment = transforms
        Dataset = MapDataset; Lines = TextLineDataset
    """,
    "gg.train": """
        Accuracy = BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy
        Checkpoints = BackupAndRestore ModelCheckpoint OrbaxCheckpoint; CSVLog = CSVLogger
        F1 = F1Score; Mean = MeanMetricWrapper; Progress = ProgbarLogger; Run = History
        TensorBoard = SummaryWriter
        TopK = SparseTopKCategoricalAccuracy TopKCategoricalAccuracy
    """,
    "gg.linalg": """
        cho_solve = cholesky_solve; cholesky = cholesky_ex; expm = matrix_exp; inv = inv_ex
        lu = lu_unpack; lu_factor = lu_factor_ex; outer = ger; solve = solve_ex
        solve_triangular = triangular_solve
    """,
    "gg.cuda": """
        memory_stats = max_memory_allocated memory_allocated memory_reserved memory_summary
        reset_peak = reset_peak_memory_stats; set_memory_limit = set_per_process_memory_fraction
        stream = Stream; synchronize = wait
    """,
    "gg.checkpoint": """
        restore = load_state_dict load_weights; save = save_file save_weights
    """,
    "gg.distributed": """
        convert = convert_sync_batchnorm; init = init_process_group initialize
        Optimizer = DistributedDataParallel DistributedOptimizer; rank = get_rank process_index
        size = device_count get_world_size process_count world_size
    """,
    "an optimizer": """
        apply_gradients = apply; groups = param_groups; learning_rate = lr
    """,
    "a metric": """
        reset = reset_state reset_states; result = compute; update = add update_state
    """,
    "a keyword": """
        accumulate = gradient_accumulation_steps; activation = act nonlinearity
        affine = elementwise_affine; alpha = concentration; argnums = argnum
        axes = axis dim dims perm; axis = axes dim dims; beta_1 = b1 beta1; beta_2 = b2 beta2
        body_fn = body_fun; channels = num_channels num_features; channels_in = in_channels
        channels_out = filters out_channels; classes = num_classes; clipvalue = clip_value
        cond_fn = cond_fun; data = dataset loader x_train; descending = reverse
        device = placement; donate = donate_argnames donate_argnums; drop_last = drop_remainder
        dropout = dropout_rate; end = alpha end_learning_rate eta_min; eps = epsilon
        epsilon = eps; every = step_size; f = fun func; factor = decay_rate gamma
        fill_value = fill; generator = key rng; global_clipnorm = max_grad_norm
        groups = feature_group_count num_groups; has_aux = aux; heads = n_heads num_heads
        hidden = dim_feedforward intermediate_dim; high = maxval; in_axes = in_dims
        indices = idx
        indices_or_sections = num_or_size_splits chunks num_splits sections split_size_or_sections
        init = init_val initial initializer; initial_value = data value
        keepdims = keep_dims keepdim; kernel_size = pool_size
        kv_heads = num_key_value_heads num_kv_heads; layers = num_layers; learning_rate = lr
        low = minval; max = clip_value_max max_value; mean = loc; min = clip_value_min min_value
        n_cols = M num_columns; n_rows = num_rows; num_classes = depth; num_workers = workers
        operands = operand; out_axes = out_dims; output_gradients = grad_outputs grad_ys
        p = prob rate; persistent = retain_graph; rho = alpha
        rows = input_dim num_embeddings vocab_size; schedules = schedulers
        shape = normalized_shape size; size = kernel_size
        static = static_argnames static_argnums; stddev = scale std
        steps = T_max decay_steps num_steps; stop = end; stride = strides; then = after
        trainable = requires_grad; unconnected_gradients = allow_unused; units = hidden_size
        units_in = in_features input_dim input_size; units_out = features out_features units
        use_bias = bias with_bias; validation = valid validation_data
        width = d_model embed_dim embedding_dim features output_dim
    """,
}
"""For each place: names there = names in other libraries; 2d stands for 1d, 2d and 3d."""
