"""What comes from outside, wrong in every way that chance finds: a value or a typed error of ours, and nothing else."""
