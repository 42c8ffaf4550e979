"""`make account-check`: probes of a deployed stack for questions that only real AWS can answer."""
