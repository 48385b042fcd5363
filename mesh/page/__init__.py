"""What pages that need nothing else are made of: a look, a library for charts, and a policy that runs nothing else."""
