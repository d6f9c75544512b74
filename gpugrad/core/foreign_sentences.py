"""Names of other libraries that stand for no single name here, and what to write instead."""

SENTENCES = {
    "gg": """
        Assert assert_equal assert_greater assert_less assert_rank ensure_shape: Write an assert, or
            gg.debug.check_numerics(x); numpy.testing compares Tensors.
        DType dtypes as_dtype: Dtypes are NumPy's: gg.float32, x.dtype.
        device_count default_backend: Call len(gg.devices()).
        DeviceSpec: Call gg.device("cuda:0").
        addbmm addcdiv addcmul addmm addmv addr baddbmm sspaddmm: Write operators: a + b @ c, x + t
            * y.
        adaptive_average_pool average_pool adaptive_max_pool: It is named by the dimensions:
            gg.nn.avg_pool2d, adaptive_avg_pool2d, max_pool2d.
        add_n accumulate_n: Write sum(tensors), or gg.sum(gg.stack(tensors), axis=0).
        aminmax std_mean var_mean moments: Call gg.min and gg.max, or gg.mean and gg.var;
            gg.function reads x once.
        associative_scan: Call gg.scan, or gg.cumulative_sum and the like.
        block_until_ready effects_barrier: Call gg.cuda.synchronize().
        boolean_mask masked_select: Write x[mask].
        bucketize: Call gg.digitize(x, boundaries) or gg.searchsorted(boundaries, x).
        case switch switch_case: gg.cond takes two functions: nest it, or compute all and call
            gg.select.
        pdist dist: Call gg.nn.cdist(x, y), or gg.linalg.norm(x - y).
        clip_by_norm: Optimizers take clipnorm=.
        clone copy identity identity_n alias: Call x.copy(); results are never written to later.
        closure_convert custom_root custom_linear_solve: gg.implicit_diff differentiates a solver.
        clear_caches clear_session: gg.function traces by itself: clear() of the function drops its
            programs.
        combinations: Index with itertools.combinations.
        control_dependencies no_op group init_scope optimization_barrier: Effects keep their order,
            so it is not needed.
        custom_derivatives: There are gg.custom_gradient, gg.custom_jvp and gg.implicit_diff.
        device_get convert_to_numpy: Call x.numpy().
        disable_jit run_functions_eagerly config: Call the Python function without gg.function;
            settings are functions such as gg.set_device.
        dtype result_dtype: Dtypes are NumPy's: gg.float32, np.dtype(name), x.dtype.
        enable_grad: A gg.GradientTape records in its block, whatever stands around it.
        enable_x64 get_default_dtype set_default_dtype set_default_tensor_type: Pass dtype= and
            device=, or set GPUGRAD_DEVICE; floats are float32 by default.
        eval_shape make_jaxpr: gg.function(f).lower(x) shows the program, with all shapes.
        executing_eagerly inside_function is_grad_enabled is_inference_mode_enabled: Code runs
            eagerly unless gg.function traces it.
        export saved_model: Objects are pickled; values are saved by gg.checkpoint.save(path,
            model).
        foldl foldr fori_loop reduce: Write a Python loop, or gg.scan and gg.while_loop, which trace
            it once.
        as_strided slice_scatter select_scatter: Write an index: y = x.copy(); y[start:stop] = v.
        clamp_min clamp_max: Call gg.clip(x, min, max).
        frac: Call gg.modf(x)[0].
        constant_pad_nd: Call gg.pad(x, widths, constant_values=value).
        from_file fromfile: Read with NumPy: gg.asarray(np.load(path)).
        frobenius_norm nuclear_norm global_norm: Call gg.linalg.norm(x, ord).
        gather_nd: Write x[indices]: indices are tuples of arrays.
        scatter_nd tensor_scatter_nd_add tensor_scatter_nd_update scatter_update: Write x[indices] =
            y or x[indices] += y, which is differentiable.
        geqrf orgqr ormqr: Call gg.linalg.qr(x).
        hann_window hamming_window bartlett_window blackman_window kaiser_window: Call
            gg.hanning(n), gg.hamming(n), or gg.scipy.signal.windows.
        iota broadcasted_iota range: Call gg.arange(n).
        is_tensor is_storage is_symbolic_tensor: Write isinstance(x, gg.Tensor).
        is_complex is_floating_point is_signed: Call gg.isdtype(x.dtype, "real floating").
        issubdtype: Call gg.isdtype(dtype, kind).
        kthvalue mode msort: Call gg.sort(x, axis) and index it.
        lax: Its functions are here: gg.cond, gg.scan, gg.while_loop, gg.stop_gradient.
        logdet: Call gg.linalg.slogdet(x)[1].
        lstm gru rnn_tanh rnn_relu lstm_cell gru_cell: Layers of gg.nn: LSTM, GRU and RNN.
        make_mesh Mesh NamedSharding PartitionSpec P pmap shard_map sharding: gg.distributed runs
            one process for each GPU: there is no mesh.
        masked_scatter: Write x[mask] = y.
        name_scope named_scope named_call: gg.profile and errors name layers by their paths in a
            gg.nn.Module.
        math: Its functions are in gg and gg.special.
        autograd: Call gg.grad, gg.vjp or gg.GradientTape; gpugrad.compat.autograd has its names.
        set_grad_enabled: Record in the block of a gg.GradientTape(), or not.
        narrow slice strided_slice dynamic_slice: Write a slice: x[start:stop].
        dynamic_update_slice: Write x[start:stop] = y.
        new_ones new_zeros: Call gg.zeros_like(x).
        numpy_function py_function pure_callback: Compute with NumPy on x.numpy(), outside of
            gg.function; gg.custom_gradient gives it a derivative.
        placeholder Session TensorSpec ShapeDtypeStruct: There are no placeholders: call functions
            with arrays.
        promote_dtypes: Call gg.result_type(x, y).
        psum pmean pmax pmin ppermute axis_index: gg.distributed has
            collectives; each process has one device.
        quantize quantize_per_tensor: gpugrad has no quantized tensors.
        rand_like randn_like randint_like: Call gg.random.normal(x.shape, dtype=x.dtype) and the
            like.
        rank: Write x.ndim.
        reverse: Call gg.flip(x, axis).
        scatter_reduce: Call gg.segment_max, gg.segment_sum and the like.
        scalar_tensor: Call gg.constant(value).
        summary: Call gg.train.fit with callbacks=[gg.train.TensorBoard(folder)].
        map: Call gg.vmap(f), or gg.scan.
        image signal: There are gg.scipy.ndimage, gg.scipy.signal and gg.nn.interpolate.
        stft istft: Call gg.scipy.signal.stft(x).
        sequence_mask: Write gg.arange(n) < gg.expand_dims(lengths, -1).
        set_printoptions printoptions get_printoptions array_repr array_str: Tensors print as
            NumPy's arrays do: np.set_printoptions applies.
        get_rng_state set_rng_state: Read and assign gg.random.default_generator().state.
        set_num_threads get_num_threads: Set the environment variable OMP_NUM_THREADS.
        t: Write x.T.
        tree tree_map tree_util nest pytree: Functions take and return nested lists, tuples and
            dicts; jax.tree works on them, too.
        unflatten: Call x.reshape(shape).
        vectorize: Call gg.vmap(f).
        view_as_complex view_as_real: Call gg.complex(re, im), gg.real(x) and gg.imag(x).
        xla mlir lite tpu raw_ops autograph: gg.function compiles: there is no other compiler to
            call.
    """,
    "gg.random": """
        fold_in split wrap_key_data key_data: Functions of gg.random take generator=, a
            gg.random.Generator(seed), which has split.
        get_state set_state create_rng_state: Read and assign gg.random.default_generator().state.
        all_candidate_sampler uniform_candidate_sampler: Draw with gg.random.choice(x, shape).
    """,
    "gg.nn": """
        Activation: Layers take activation=, and a Sequential takes functions.
        Add Average Dot Maximum Minimum Multiply Subtract: Write the operators in forward: x + y, x
            * y.
        Attention AdditiveAttention: Call gg.nn.scaled_dot_product_attention(q, k, v).
        Bidirectional: gg.nn.RNN, LSTM and GRU take bidirectional=True.
        Buffer: Assign gg.Variable(x, trainable=False) as an attribute.
        CircularPad2d ConstantPad2d ReflectionPad2d ReplicationPad2d ZeroPad2d ZeroPadding2d: gg.pad
            pads, also as a layer of a Sequential: lambda x: gg.pad(x, widths).
        CategoricalHinge Dice Tversky MAPE MSLE MeanAbsolutePercentageError
            MeanSquaredLogarithmicError mape msle categorical_hinge dice tversky: Write it with
            gg.nn's losses, or as a function of outputs and labels.
        Concatenate: Call gg.concat.
        Cropping2d CenterCrop: Write a slice: x[:, :, 2:-2, 2:-2].
        DepthwiseConv2d SeparableConv2d depthwise_conv2d separable_conv2d: gg.nn.Conv2d takes
            groups=: the number of channels, for a depthwise one.
        Dropout2d SpatialDropout2d dropout2d FeatureAlphaDropout: gg.nn.Dropout takes noise_shape=.
        EinsumDense: Call gg.einsum in forward.
        GaussianDropout GaussianNoise: Add gg.random.normal(x.shape) if gg.nn.is_training().
        GlobalAveragePooling2d GlobalMaxPooling2d GlobalAvgPool2d GlobalMaxPool2d: Reduce the axes
            with gg.mean(x, axis=(2, 3)) or gg.max.
        Input InputLayer: There are no symbolic inputs: call the model with arrays.
        InputSpec: Layers create their Variables in __init__, from the lengths that it is given.
        Lambda Wrapper: A Sequential takes functions, too.
        Masking: Attention and losses take masks; padded targets take ignore_index=.
        ModuleDict ModuleList ParameterDict ParameterList Container: Modules and Variables are
            attributes, also in lists and dicts.
        Normalization Rescaling Discretization TextVectorization StringLookup: Prepare examples in
            gg.data.DataLoader(map=...).
        Parameter Param variable: Assign a gg.Variable as an attribute.
        Permute RepeatVector Reshape Unflatten: A Sequential takes functions: lambda x:
            x.reshape(len(x), -1).
        SyncBatchNorm: It is called gg.distributed.SyncBatchNorm here.
        TimeDistributed: Layers work on the last axes: all before them are batch dimensions.
        Transformer TransformerEncoder TransformerDecoder: Put gg.nn.TransformerBlock layers into a
            gg.nn.Sequential.
        SpectralNormalization spectral_norm weight_norm: Divide in forward: self.weight /
            gg.linalg.norm(self.weight, 2).
        avg_pool max_pool conv conv_transpose pool: It is named by the dimensions: gg.nn.avg_pool2d,
            max_pool2d, conv2d.
        bias_add: Write x + bias.
        compact nowrap setup: Create layers in __init__ and call them in forward.
        l2_loss: Write gg.sum(x * x) / 2.
        utils parallel: gg.optim clips gradients; gg.distributed trains on several GPUs.
        weighted_cross_entropy_with_logits: gg.nn.bce_with_logits_loss takes weights; or multiply
            the loss of each example.
    """,
    "gg.nn.initializers": """
        delta_orthogonal: gg.nn.initializers.orthogonal is the nearest.
        deserialize get serialize: Pass the function, or the name of an activation.
        Identity identity: Pass lambda shape, generator, dtype: gg.eye(*shape, dtype=dtype).
        lecun_uniform: gg.nn.initializers.variance_scaling takes distribution=.
    """,
    "gg.optim": """
        ASGD Rprop SparseAdam Ftrl: It is not there; gg.optim.Optimizer takes a formula of your own.
        adaptive_grad_clip clip_by_norm: Optimizers take clipnorm=, clipvalue= and global_clipnorm=.
        apply_updates chain: Optimizers step in place: apply_gradients(zip(gradients, variables)).
        apply_if_finite: Optimizers take skip_nonfinite=True.
        masked multi_transform: Optimizers take groups= with settings of their own.
        MultiSteps: Optimizers take accumulate=.
        Lookahead: gg.optim.EMA averages weights.
    """,
    "gg.optim.schedules": """
        ChainedScheduler LambdaLR MultiplicativeLR InverseTimeDecay CyclicLR: A schedule is any
            function of the number of steps; schedules multiply.
        CosineAnnealingWarmRestarts CosineDecayRestarts: Join several:
            gg.optim.schedules.join([cosine, cosine], boundaries).
        ReduceLROnPlateau: Assign optimizer.learning_rate in a gg.train.Callback.
    """,
    "gg.data": """
        BatchSampler DistributedSampler RandomSampler Sampler SequentialSampler Subset
            SubsetRandomSampler WeightedRandomSampler random_split: gg.data.DataLoader takes
            shuffle=, seed= and shard=; a list of indices makes a subset.
        ChainDataset ConcatDataset IterableDataset StackDataset TFRecordDataset: gg.data.DataLoader
            takes anything with __len__ and __getitem__, or an iterable.
        AUTOTUNE: gg.data.DataLoader takes num_workers= and prefetch=.
        default_collate: gg.data.DataLoader takes collate_fn=.
        get_worker_info: gg.data.DataLoader splits the work by itself.
    """,
    "gg.train": """
        AUC BinaryIoU ConcordanceCorrelation CosineSimilarity FBetaScore FalseNegatives
            FalsePositives IoU MeanIoU Precision R2Score Recall RootMeanSquaredError Sum
            TrueNegatives TruePositives ConfusionMatrix: Write it as a gg.train.Metric, or as
            gg.train.Mean(f) for the mean of a function.
        CallbackList LambdaCallback: Subclass gg.train.Callback; fit takes callbacks=[...].
        LearningRateScheduler ReduceLROnPlateau: Pass a schedule:
            gg.optim.Adam(gg.optim.schedules.cosine(0.1, 1000)).
        RemoteMonitor: Subclass gg.train.Callback: run.logs has the numbers.
        TerminateOnNaN: fit raises NumericsError at a NaN loss.
        Trainer: Call gg.train.fit((model, loss), data, optimizer=optimizer).
    """,
    "gg.linalg": """
        LinearOperator: It is called gg.scipy.sparse.linalg.LinearOperator here.
        band_part: Call gg.tril and gg.triu.
        diag diag_part set_diag tensor_diag: Call gg.diag, gg.linalg.diagonal or
            gg.diagonal_scatter.
        householder_product: Call gg.linalg.qr(x).
        ldl_factor ldl_solve: It is not there: use gg.linalg.lu_factor, or gg.linalg.cholesky.
        tridiagonal_solve tridiagonal_matmul banded_triangular_solve: gg.scipy.linalg has
            solve_banded.
    """,
    "gg.cuda": """
        amp: Call gg.mixed_precision("float16"), with gg.optim.LossScaleOptimizer.
        Event: gg.profile() times ops.
        current_device set_device: Call gg.set_device, or gg.device for a block.
        device_count get_device_name get_device_properties: Call gg.devices() and gg.about().
        manual_seed_all: Call gg.set_seed(seed).
    """,
    "a keyword": """
        a input inputs tensor X: Arrays are positional: leave the name out.
        activity_regularizer bias_regularizer kernel_regularizer regularizer: Add the penalty to the
            loss: it is part of what you differentiate.
        autograph jit_compile reduce_retracing input_signature fullgraph: gg.function traces by
            shapes and dtypes; static= names arguments that are constants.
        batch_first: The time is the second-to-last axis, so there is no batch_first.
        betas: They are called beta_1 and beta_2 here.
        bias_constraint kernel_constraint: Assign the projected value after a step.
        capturable foreach fused: All Variables are updated by one kernel already.
        create_graph: Compute the gradient within the block of another gg.GradientTape().
        data_format: Images are (batch, channels, height, width).
        decay: The learning rate may be a schedule: gg.optim.schedules.
        input_shape: Layers create their Variables in __init__, from the lengths that it is given.
        inplace: Ops return new Tensors: assign the result, x = gg.relu(x).
        layout memory_format non_blocking pin_memory: Arrays are dense; gg.prefetch_to_device copies
            batches ahead.
        maximize: Negate the loss.
        name: Ops have no names: a gg.nn.Module names its Variables by their paths.
        nesterov: gg.optim.NAdam is Adam with Nesterov's momentum.
        parallel_iterations back_prop swap_memory: It would change nothing.
        params parameters: Variables come with their gradients, to apply_gradients.
        requires_grad: tape.watch(x) records a Tensor; a gg.Variable is watched.
        return_sequences return_state: The layer returns all outputs and the last state.
        stateful: Pass the state to the layer, and take it from its results.
        unbiased: Pass correction=1 (unbiased) or 0.
        verbose: Pass progress=False for no bar.
        weight_decay: gg.optim.AdamW decays weights.
    """,
    "a module": """
        add append: Its layers are a list: model.layers.append(layer).
        add_module register_module set_submodule: Modules and Variables are attributes, also in
            lists and dicts.
        add_loss losses: Add the penalty to the loss: it is part of what you differentiate.
        add_metric metrics metrics_names: gg.train.fit takes metrics=.
        add_weight add_variable param: Assign a gg.Variable as an attribute, in __init__.
        apply: Call the model; gg.nn.functional_call(model, values, x) calls it with other values.
        bfloat16 double float half type: Layers take dtype=; gg.mixed_precision computes in 16 bits.
        buffers non_trainable_variables non_trainable_weights: It has variables, some of them not
            trainable.
        build compute_output_shape compute_output_spec input_spec: Layers create their Variables in
            __init__, from the lengths that it is given.
        call: Implement forward, and call the model: model(x).
        children modules named_children get_submodule get_layer: It has named_modules().
        compile fit train_on_batch train_step: Train it with gg.train.fit((model, loss), data,
            optimizer=optimizer).
        compute_dtype dtype_policy: gg.mixed_precision("bfloat16") sets it for a block.
        count_params: It has summary().
        cpu cuda ipu to to_empty xpu: Its Variables stay on their device; create it inside with
            gg.device(device):
        eval train: Set training mode for a block: with gg.nn.training():
        evaluate test_on_batch: Call gg.train.evaluate(model, data, metrics).
        export from_config get_config to_json: Objects are pickled; values are saved by
            gg.checkpoint.save(path, model).
        extra_repr: The repr shows the constructor's arguments.
        get_parameter get_buffer: It has named_variables(); dict() of it finds one by its path.
        get_state_tree get_weights: It has state().
        init: Variables are created in __init__; gg.set_seed makes them the same again.
        init_weights: Layers take initializers such as gg.nn.initializers.he_normal.
        load_weights: Call gg.checkpoint.restore(path, model).
        named_buffers named_parameters: It has named_variables().
        parameters trainable_weights: It has trainable_variables.
        predict predict_on_batch: Call it.
        quantize: gpugrad has no quantized tensors.
        register_backward_hook register_full_backward_hook: gg.custom_gradient changes a gradient;
            tape.gradient takes any Tensor as a source.
        register_buffer: Assign gg.Variable(x, trainable=False) as an attribute.
        register_parameter: Assign a gg.Variable as an attribute.
        requires_grad_: It has freeze() and unfreeze().
        save save_weights: Call gg.checkpoint.save(path, model).
        set_weights set_state_tree: It has load_state(values).
        share_memory: gg.data.DataLoader has processes; gg.distributed trains with several.
        stateless_call: Call gg.nn.functional_call(model, values, x).
        training: gg.nn.is_training() says whether a block of gg.nn.training() runs.
        weight: Dense has a kernel; named_variables() lists what a layer has.
        weights: It has variables.
        zero_grad: Gradients are not stored: tape.gradient returns them.
    """,
    "an optimizer": """
        add_param_group: Pass groups= when it is created.
        defaults get_config from_config: Its settings are attributes, such as learning_rate.
        init: Call build(variables), or let the first step do it.
        scale_loss: gg.optim.LossScaleOptimizer(optimizer) has it.
        set_weights: It has load_state_dict(values).
        state variables: It has state_dict().
        step update update_step: Call apply_gradients(zip(gradients, variables)).
        zero_grad: Gradients are not stored: tape.gradient returns them.
    """,
    "a metric": """
        forward: Call update(outputs, labels).
        to: It computes where the outputs are.
    """,
}
"""For each place: names, and a sentence about them. Lines that go on are indented."""

PATTERNS = r"""
    (\w+[^_])_(copy|safe)|unsafe_(\w+): Ops never share memory that is written to: leave it out.
    (Bool|Byte|Char|Double|Float|Half|Int|Long|Short)(Tensor|Storage)|\w*Storage: Call
        gg.asarray(x, dtype).
    .*(sparse|coalesce|_bs[cr]|_cs[cr]|_coo|ccol|crow|Ragged).*|(hs|sa|ss)\w*mm|spmm|dsmm|smm:
        Sparse arrays are in gg.scipy.sparse.
    .*(quant|fbgemm|qint|q_scale|q_zero|q_per|int_repr|qscheme).*: gpugrad has no quantized
        tensors.
    (cudnn|miopen|mkldnn|native)_\w+: Layers and functions of gg.nn choose the kernel
        themselves.
    is_(mps|xpu|ipu|mkldnn|vulkan|mtia|maia|meta|nested|distributed): Write x.device.kind: it is
        "cpu" or "cuda".
    Random\w+|(random_)?(horizontal|vertical)_flip|AutoContrast|MixUp|CutMix|RandAugment|AugMix:
        gg.data.augment has crops, flips and affine maps.
    LinearOperator\w*: It is called gg.scipy.sparse.linalg.LinearOperator here.
    stateless_(\w+): Functions of gg.random take generator=gg.random.Generator(seed).
    (dynamic_)?(\w+)_in_dim: Write an index: x[:, start:stop].
    (de)?serialize|get: Pass the object itself, or its class.
    sym_\w+|Sym\w+: Shapes are ints, also in a traced function.
    fractional_\w+|Fractional\w+|(max_unpool|MaxUnpool)\w+|R?RReLU|rrelu: It has no counterpart
        here; gg.op declares an op of your own.
    (\w+)_with_indices: gg.nn.unfold and gg.argmax give the indices.
    register_\w*(hook|fn): Call register_forward_hook(f) or register_forward_pre_hook(f) of a
        layer.
    float8_\w+|float4_\w+|float6_\w+|u?int[124]: gpugrad has no 8-bit floats and no 4-bit integers.
"""
"""Regular expressions, and a sentence about names that match one."""
