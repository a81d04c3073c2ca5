"""Measures every figure that the project publishes, beside its peers, in one run."""
