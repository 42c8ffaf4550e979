"""Read from a signed request which actions it needs on which resources.

"Actions, resources, and condition keys" for DynamoDB, KMS, Lambda, S3, Secrets Manager, SNS and
Bedrock in the Service Authorization Reference (seen 2026-11-22). A request that is not in these
tables is refused.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, unquote
from xml.etree.ElementTree import fromstring

from tests.emulator.event import ACCOUNT_ID, REGION
from tests.iam.policy import LEADING_KEYS, MANTLE_MODEL, PASSED_TO, Access

_SCOPE: Final = (
    r"(?P<key>[A-Z0-9]+)/\d{8}/(?P<region>[a-z0-9-]+)/(?P<service>[a-z0-9-]+)/aws4_request"
)
_SIGNED: Final = re.compile(rf"AWS4-HMAC-SHA256 Credential={_SCOPE},")
# A signed address has its signature in the query ("Authenticating Requests: Using Query
# Parameters", Amazon S3 API reference, 2026-11).
_SIGNED_ADDRESS: Final = re.compile(_SCOPE)
# Parameters that change neither the action nor what it is on.
_OF_THE_REPLY: Final = ("X-Amz-", "response-", "x-id")
# An item's partition key is called so in every table of infra/template.yaml.
PARTITION: Final = "pk"
_KEY_EQUALS: Final = re.compile(r"([#\w]+)\s*=\s*(:\w+)")
# Secrets Manager appends these to the name of a secret: a hyphen and six random characters.
SECRET_SUFFIX: Final = "-AbCdEf"
_BEDROCK_PATH: Final = re.compile(
    r"/model/(?P<model>[^/]+)/"
    r"(?P<operation>converse-stream|count-tokens|invoke-with-response-stream|invoke)"
)
_JOB_PATH: Final = re.compile(r"/model-invocation-job(?:s|/(?P<job>[a-z0-9]{12})(?P<stop>/stop)?)?")
# Formats of OpenAI and Anthropic, whatever comes before them in a `base_url`.
_DOOR_PATH: Final = re.compile(r"(?:/[\w-]+)*/(?P<operation>chat/completions|messages|responses)")
_INVOKE_PATH: Final = re.compile(r"/2015-03-31/functions/(?P<name>[^/]+)/invocations")
_GEOGRAPHIES: Final = frozenset({"apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"})

# The actions that DynamoDB decides alone by the table, without keys of items.
_SINGLE: Final = frozenset({"DeleteItem", "GetItem", "PutItem", "UpdateItem"})
_TRANSACTED: Final = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}


class UnknownCall(Exception):
    """A request of which it is not known what it needs, which refuses it."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request as it came in; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Who signed a request, and for which service."""

    access_key_id: str
    region: str
    service: str


def read_signature(call: Call) -> Signature:
    """Return who signed; raise UnknownCall for a request that nobody did."""
    found = _SIGNED.match(call.headers.get("authorization", ""))
    if found is None and (credential := parse_qs(call.query).get("X-Amz-Credential")):
        found = _SIGNED_ADDRESS.fullmatch(credential[0])
    if found is None:
        raise UnknownCall("the request is not signed")
    return Signature(access_key_id=found["key"], region=found["region"], service=found["service"])


def read_accesses(call: Call, signature: Signature) -> tuple[Access, ...]:
    """Return all that a request needs; raise UnknownCall where that is not known."""
    # Models may be in any region, everything else is where the stack is.
    if signature.region != REGION and not signature.service.startswith("bedrock"):
        raise UnknownCall(f"region {signature.region}")
    reader = _READERS.get(signature.service)
    if reader is None:
        raise UnknownCall(f"service {signature.service}")
    try:
        return tuple(reader(call))
    except (KeyError, ValueError, TypeError) as error:
        raise UnknownCall(f"{signature.service}: {error!r}") from error


def bucket_listing(call: Call) -> Access:
    """Return what S3 needs to answer 404 and not 403 for an object that does not exist."""
    bucket = unquote(call.path).split("/")[1]
    return Access("s3:ListBucket", f"arn:aws:s3:::{bucket}", {})


def _read_dynamodb(call: Call) -> Iterator[Access]:
    version, _, operation = call.headers["x-amz-target"].partition(".")
    if version != "DynamoDB_20120810":
        raise UnknownCall(call.headers["x-amz-target"])
    body = json.loads(call.body)
    match operation:
        case operation if operation in _SINGLE:
            yield _item_access(operation, body)
        case "Query":
            yield _table_access(operation, body, (_queried_partition(body),))
        case "Scan":
            # "Using IAM policy conditions for fine-grained access control": it has no leading key.
            yield _table_access(operation, body, None)
        case "BatchGetItem":
            for table, wanted in body["RequestItems"].items():
                keys = tuple(_partition(key) for key in wanted["Keys"])
                yield _table_access(operation, {"TableName": table}, keys)
        case "TransactGetItems" | "TransactWriteItems":
            # "Amazon DynamoDB Transactions: How it works": allowed through those of their parts.
            for action in body["TransactItems"]:
                ((verb, part),) = action.items()
                yield _item_access(_TRANSACTED[verb], part)
        case _:
            raise UnknownCall(f"dynamodb:{operation}")


def _item_access(action: str, part: Mapping[str, Any]) -> Access:
    return _table_access(action, part, (_partition(part["Item" if "Item" in part else "Key"]),))


def _table_access(
    action: str, body: Mapping[str, Any], leading_keys: tuple[str, ...] | None
) -> Access:
    resource = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{body['TableName']}"
    if "IndexName" in body:
        resource += f"/index/{body['IndexName']}"
    return Access(f"dynamodb:{action}", resource, {LEADING_KEYS: leading_keys})


def _partition(key: Mapping[str, Any]) -> str:
    return str(key[PARTITION]["S"])


def _queried_partition(body: Mapping[str, Any]) -> str:
    """Return the partition that a query is for, which must be stated by `=`."""
    names = body.get("ExpressionAttributeNames", {})
    for name, value in _KEY_EQUALS.findall(body["KeyConditionExpression"]):
        if names.get(name, name) == PARTITION:
            return str(body["ExpressionAttributeValues"][value]["S"])
    raise UnknownCall(f"the query {body['KeyConditionExpression']!r}")


# The queries of an upload in parts.
_IN_PARTS: Final = (
    ("POST", ["uploads"]),
    ("PUT", ["partNumber", "uploadId"]),
    ("POST", ["uploadId"]),
)


def _read_s3(call: Call) -> Iterator[Access]:
    actions = {"DELETE": "s3:DeleteObject", "GET": "s3:GetObject", "PUT": "s3:PutObject"}
    bucket, _, key = unquote(call.path).removeprefix("/").partition("/")
    asked = [
        it
        for it in parse_qs(call.query, keep_blank_values=True)
        if not it.startswith(_OF_THE_REPLY)
    ]
    if (call.method, asked) == ("POST", ["delete"]) and not key:
        # "Actions, resources, and condition keys for Amazon S3": as each deletion by itself.
        for named in fromstring(call.body).findall(".//{*}Key"):
            yield Access("s3:DeleteObject", f"arn:aws:s3:::{bucket}/{named.text}", {})
        return
    if (call.method, sorted(asked)) in _IN_PARTS:
        # "Multipart upload API and permissions": each call of an upload but its end by force.
        yield Access("s3:PutObject", f"arn:aws:s3:::{bucket}/{key}", {})
        return
    if (call.method, asked[:1], key) == ("GET", ["list-type"], ""):
        yield bucket_listing(call)
        return
    if asked or not key or call.method not in actions:
        raise UnknownCall(f"s3: {call.method} {call.path}?{call.query}")
    yield Access(actions[call.method], f"arn:aws:s3:::{bucket}/{key}", {})
    if copied := unquote(call.headers.get("x-amz-copy-source", "")).lstrip("/"):
        yield Access("s3:GetObject", f"arn:aws:s3:::{copied}", {})


def _read_secrets_manager(call: Call) -> Iterator[Access]:
    if call.headers["x-amz-target"] != "secretsmanager.GetSecretValue":
        raise UnknownCall(call.headers["x-amz-target"])
    name = json.loads(call.body)["SecretId"]
    if not name.startswith("arn:"):
        ours = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT_ID}"
        name = f"{ours}:secret:{name}{SECRET_SUFFIX}"
    yield Access("secretsmanager:GetSecretValue", name, {})


def _read_kms(call: Call) -> Iterator[Access]:
    service, _, operation = call.headers["x-amz-target"].partition(".")
    if service != "TrentService" or operation not in ("Decrypt", "Encrypt"):
        raise UnknownCall(call.headers["x-amz-target"])
    yield Access(f"kms:{operation}", json.loads(call.body)["KeyId"], {})


def _read_sns(call: Call) -> Iterator[Access]:
    form = parse_qs(call.body.decode(), strict_parsing=True)
    if form["Action"] != ["Publish"]:
        raise UnknownCall(f"sns:{form['Action']}")
    (topic,) = form["TopicArn"]
    yield Access("sns:Publish", topic, {})


def _read_sqs(call: Call) -> Iterator[Access]:
    service, _, operation = call.headers["x-amz-target"].partition(".")
    if service != "AmazonSQS":
        raise UnknownCall(call.headers["x-amz-target"])
    name = json.loads(call.body)["QueueUrl"].rpartition("/")[2]
    yield Access(f"sqs:{operation}", f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}", {})


def _read_bedrock(call: Call) -> Iterator[Access]:
    """Yield the profile and its model: "Prerequisites for inference profiles", Bedrock user guide.

    A guardrail needs an action of its own, which is refused until this file knows it.
    """
    found = _BEDROCK_PATH.fullmatch(unquote(call.path))
    door = _DOOR_PATH.fullmatch(call.path)
    if door is not None and call.method == "POST":
        yield from _read_bedrock_door(call, door["operation"])
        return
    if (job := _JOB_PATH.fullmatch(call.path)) is not None:
        yield from _read_bedrock_job(call, job)
        return
    if found is None or call.method != "POST":
        raise UnknownCall(f"bedrock: {call.method} {call.path}")
    if b"guardrailConfig" in call.body or "x-amzn-bedrock-guardrailidentifier" in call.headers:
        raise UnknownCall("bedrock:ApplyGuardrail")
    model, region = found["model"], read_signature(call).region
    if found["operation"] == "count-tokens":
        # By a model, never by a profile.
        yield Access(
            "bedrock:CountTokens", f"arn:aws:bedrock:{region}::foundation-model/{model}", {}
        )
        return
    yield from _model_accesses(model, region, streams=found["operation"] != "invoke")


def _read_bedrock_door(call: Call, operation: str) -> Iterator[Access]:
    """Yield the model of a request in OpenAI's format, and the project of a response.

    "Making inference requests" and "Responses API", Bedrock user guide (seen 2026-11-27). A
    stored response needs actions of its own, which are refused until this file knows them.
    """
    body = json.loads(call.body)
    region = read_signature(call).region
    yield from _model_accesses(body["model"], region, streams=body["stream"])
    if operation == "responses":
        if body["store"] is not False:
            raise UnknownCall("bedrock: a stored response")
        project = f"arn:aws:bedrock:{region}:{ACCOUNT_ID}:project/default"
        yield Access("bedrock:InvokeModel", project, {})


def _read_bedrock_job(call: Call, found: re.Match[str]) -> Iterator[Access]:
    """Yield the models and the job: Amazon Bedrock, Service Authorization Reference (2026-11-28).

    The caller that creates a job also passes on the job's role.
    """
    region = read_signature(call).region
    jobs = f"arn:aws:bedrock:{region}:{ACCOUNT_ID}:model-invocation-job/"
    match call.method, found["job"], found["stop"]:
        case "POST", None, _:
            body = json.loads(call.body)
            action = "bedrock:CreateModelInvocationJob"
            yield Access(action, f"{jobs}abcdefghij12", {})
            yield from _models(action, body["modelId"], region)
            yield Access("iam:PassRole", body["roleArn"], {PASSED_TO: ("bedrock.amazonaws.com",)})
        case "POST", job, "/stop":
            yield Access("bedrock:StopModelInvocationJob", f"{jobs}{job}", {})
        case "GET", None, _:
            yield Access("bedrock:ListModelInvocationJobs", "*", {})
        case "GET", job, None:
            yield Access("bedrock:GetModelInvocationJob", f"{jobs}{job}", {})
        case _:
            raise UnknownCall(f"bedrock: {call.method} {call.path}")


def _read_mantle(call: Call) -> Iterator[Access]:
    """Yield the project: "Amazon Bedrock Powered by AWS Mantle" (seen 2026-11-27)."""
    if _DOOR_PATH.fullmatch(call.path) is None or call.method != "POST":
        raise UnknownCall(f"bedrock-mantle: {call.method} {call.path}")
    project = f"arn:aws:bedrock-mantle:{read_signature(call).region}:{ACCOUNT_ID}:project/default"
    context = {MANTLE_MODEL: (json.loads(call.body)["model"],)}
    yield Access("bedrock-mantle:CreateInference", project, context)


def _model_accesses(model: str, region: str, *, streams: bool) -> Iterator[Access]:
    action = "bedrock:InvokeModelWithResponseStream" if streams else "bedrock:InvokeModel"
    yield from _models(action, model, region)


def _models(action: str, model: str, region: str) -> Iterator[Access]:
    geography, _, base = model.partition(".")
    if geography in _GEOGRAPHIES:
        profile = f"arn:aws:bedrock:{region}:{ACCOUNT_ID}:inference-profile/{model}"
        yield Access(action, profile, {})
        model = base
    yield Access(action, f"arn:aws:bedrock:{region}::foundation-model/{model}", {})


def _read_lambda(call: Call) -> Iterator[Access]:
    found = _INVOKE_PATH.fullmatch(unquote(call.path))
    if found is None or call.method != "POST":
        raise UnknownCall(f"lambda: {call.method} {call.path}")
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{found['name']}"
    yield Access("lambda:InvokeFunction", arn, {})


_READERS: Final[Mapping[str, Callable[[Call], Iterator[Access]]]] = {
    "bedrock": _read_bedrock,
    "bedrock-mantle": _read_mantle,
    "dynamodb": _read_dynamodb,
    "kms": _read_kms,
    "lambda": _read_lambda,
    "s3": _read_s3,
    "secretsmanager": _read_secrets_manager,
    "sns": _read_sns,
    "sqs": _read_sqs,
}
