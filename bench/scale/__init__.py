"""Measurement of how calls, units, memory and CPU grow with a deployment: `make scale`."""
