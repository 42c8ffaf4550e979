"""The api's routes, a module for each thing they are about."""
