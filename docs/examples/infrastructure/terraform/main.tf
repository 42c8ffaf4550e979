# template_url="$(../package.sh my-bucket us-east-1)"; terraform apply -var "template_url=$template_url"
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

variable "template_url" {
  description = "What package.sh printed."
  type        = string
}

variable "parameters" {
  description = "Parameters of the stack, such as AlarmEmail (infra/README.md lists them)."
  type        = map(string)
  default     = { AlarmEmail = "", TableDeletionProtection = "true" }
}

resource "aws_cloudformation_stack" "tollgate" {
  name         = "tollgate"
  template_url = var.template_url
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  parameters   = var.parameters

  # The stack has the books of all workspaces.
  lifecycle {
    prevent_destroy = true
  }
}

output "base_url" {
  value = aws_cloudformation_stack.tollgate.outputs["ApiUrl"]
}

output "tables" {
  value = {
    core        = aws_cloudformation_stack.tollgate.outputs["CoreTableName"]
    ledger      = aws_cloudformation_stack.tollgate.outputs["LedgerTableName"]
    generations = aws_cloudformation_stack.tollgate.outputs["GenerationsTableName"]
  }
}
