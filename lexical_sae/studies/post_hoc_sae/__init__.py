"""A model's words compared with sparse autoencoders fitted to its encoder afterwards."""
