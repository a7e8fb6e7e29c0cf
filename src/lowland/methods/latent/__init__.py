"""Methods with latent variables: rows are functions of a few unknown coordinates, plus noise."""
