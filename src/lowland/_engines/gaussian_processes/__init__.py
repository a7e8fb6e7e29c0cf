"""Gaussian processes: covariances, likelihoods, bounds by inducing points, with all slopes."""
