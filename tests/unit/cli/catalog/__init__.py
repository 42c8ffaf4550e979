"""Tests of keeping a routing file true."""
