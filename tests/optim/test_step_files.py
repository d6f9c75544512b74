"""The way of an optimizer's step is short."""

from walk import files_passed


def test_a_warm_eager_step_of_adam_passes_at_most_10_files():
    passed = files_passed(
        """
        model = gg.nn.Sequential(gg.nn.Dense(8, 16, activation=gg.tanh), gg.nn.Dense(16, 1))
        variables, optimizer = model.trainable_variables, gg.optim.Adam(0.01)
        assert len(variables) == 4
        with gg.GradientTape() as tape:
            loss = gg.mean(model(gg.ones((4, 8))) ** 2)
        pairs = list(zip(tape.gradient(loss, variables), variables, strict=True))
        """,
        "optimizer.apply_gradients(pairs)",
    )
    assert "optim/adam.py" in passed
    assert len(passed) <= 10, passed
