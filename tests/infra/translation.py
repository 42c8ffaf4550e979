"""The template as CloudFormation sees it: translated by SAM's own translator, offline.

The source template is not what is deployed: SAM takes a misspelt value and falls back in silence.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

from tests.infra.conditions import decided

ROOT: Final = Path(__file__).parents[2]
TEMPLATE: Final = ROOT / "infra" / "template.yaml"
FUNCTIONS: Final = ROOT / "functions"

BEDROCK_ROLE: Final = "BedrockBatchRole"

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of the REST API; `function` is the logical id of the alias behind it."""

    path: str
    method: str
    integration: JsonObject

    @property
    def function(self) -> str:
        return str(self.uri[1]["Alias"]["Ref"])

    @property
    def uri(self) -> list[Any]:
        """The text of the URI, and what is filled into it."""
        return list(self.integration["uri"]["Fn::Sub"])


@dataclass(frozen=True, slots=True)
class Stack:
    """A translated template, with the lookups that tests need."""

    template: JsonObject

    def given(self, **parameters: str) -> "Stack":
        """The stack that these parameters make, the others having their defaults."""
        return Stack(decided(self.template, parameters))

    @property
    def parameters(self) -> JsonObject:
        return self.template["Parameters"]

    @property
    def outputs(self) -> JsonObject:
        return self.template["Outputs"]

    def resources(self, kind: str) -> dict[str, JsonObject]:
        """The resources of a type, by logical id."""
        everything = self.template["Resources"].items()
        return {name: resource for name, resource in everything if resource["Type"] == kind}

    def properties(self, kind: str) -> dict[str, JsonObject]:
        return {name: resource["Properties"] for name, resource in self.resources(kind).items()}

    @property
    def roles(self) -> dict[str, JsonObject]:
        """The properties of each role, whose policies include the stack's own managed ones.

        The role that Bedrock assumes is not among them.
        """
        managed = self.properties("AWS::IAM::ManagedPolicy")
        found = {}
        for name, role in self.properties("AWS::IAM::Role").items():
            if name == BEDROCK_ROLE:
                continue
            attached = [it["Ref"] for it in role.get("ManagedPolicyArns", ()) if "Ref" in it]
            policies = [*role.get("Policies", ()), *(managed[each] for each in attached)]
            found[name] = role | ({"Policies": policies} if policies else {})
        return found

    @property
    def functions(self) -> dict[str, JsonObject]:
        return self.properties("AWS::Lambda::Function")

    @property
    def api_definition(self) -> JsonObject:
        (api,) = self.properties("AWS::ApiGateway::RestApi").values()
        return api["Body"]

    def routes(self) -> Iterator[Route]:
        for path, methods in self.api_definition["paths"].items():
            for method, operation in methods.items():
                integration = operation["x-amazon-apigateway-integration"]
                yield Route(path=path, method=method, integration=integration)

    def descriptions(self) -> dict[str, str]:
        """The descriptions of the versions of functions, by function, with their parameters."""
        found = {}
        for version in self.properties("AWS::Lambda::Version").values():
            text = version["Description"]["Fn::Sub"]
            found[version["FunctionName"]["Ref"]] = text[0] if isinstance(text, list) else text
        return found

    def environment(self, function: str) -> JsonObject:
        return self.functions[function]["Environment"]["Variables"]


def load_template() -> JsonObject:
    """The source template, as SAM reads it."""
    return yaml_parse(TEMPLATE.read_text())


def translate(source: JsonObject, **parameters: str) -> Stack:
    """Translate as CloudFormation's transform does once packaging has uploaded the code.

    SAM resolves some references to parameters itself, by the values of a deploy.
    """
    packaged = copy.deepcopy(source)
    packaged["Globals"]["Function"]["CodeUri"] = "s3://artefacts/functions.zip"
    session = boto3.Session(region_name="us-east-1")
    translator = Translator({}, Parser(), boto_session=session)
    return Stack(translator.translate(packaged, parameters))
