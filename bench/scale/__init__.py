"""Measure how calls, units, memory and CPU grow with a deployment: `make scale`."""
