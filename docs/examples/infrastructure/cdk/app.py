"""The gateway as a nested stack: TEMPLATE_URL="$(../package.sh my-bucket us-east-1)" cdk deploy.

CfnInclude cannot include the template: it refuses references that only SAM's transform resolves.
"""

import os

import aws_cdk as cdk

app = cdk.App()
stack = cdk.Stack(app, "Platform")
gateway = cdk.CfnStack(
    stack,
    "Tollgate",
    template_url=os.environ["TEMPLATE_URL"],
    parameters={"AlarmEmail": "platform@example.com"},
)
# The nested stack has the books of all workspaces.
gateway.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
cdk.CfnOutput(stack, "BaseUrl", value=gateway.get_att("Outputs.ApiUrl").to_string())
app.synth()
