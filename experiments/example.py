"""The smallest experiment there is, for the tests."""

import numpy as np


def mean_of_normals(n: int, rng: np.random.Generator) -> dict[str, float]:
    """Mean and squared deviation of `n` normal variables of mean 1."""
    sample = rng.normal(1.0, size=n)
    return {"mean": float(sample.mean()), "variance": float(sample.var(ddof=1))}
