"""An emulator of AWS Lambda behind an API Gateway REST API; shares no code with what it tests."""

from tests.emulator.emulator import Emulator
from tests.emulator.function import Function, InitFailed
from tests.emulator.invocation import Invocation
from tests.emulator.violations import Rule, RulesBroken, Violation

__all__ = ["Emulator", "Function", "InitFailed", "Invocation", "Rule", "RulesBroken", "Violation"]
