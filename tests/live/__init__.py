"""What costs money: tests of a deployed stack, run by `make smoke` and by nothing else."""
