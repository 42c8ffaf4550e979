#!/bin/sh
# Install the newest version of every client below a folder, which TOLLGATE_CLIENTS then names:
#   tests/live/agents/install.sh /tmp/clients
# Needs npm, a Node.js that the newest SDKs accept (22 or later), and Python.
set -eu
folder=$1
mkdir -p "$folder/node"
printf '{"private": true, "type": "module"}\n' > "$folder/node/package.json"
# Each package by its tag: without it, npm takes an older version where Node.js is too old for the newest.
npm install --prefix "$folder/node" --no-audit --no-fund \
  @anthropic-ai/claude-code@latest @openai/codex@latest openai@latest @anthropic-ai/sdk@latest \
  ai@latest @ai-sdk/openai@latest @ai-sdk/anthropic@latest @ai-sdk/openai-compatible@latest \
  @openai/agents@latest @openrouter/sdk@latest zod@latest
# One environment a client: what one of them pins would hold back another.
install() {
  name=$1
  shift
  python3 -m venv "$folder/$name"
  "$folder/$name/bin/pip" install --quiet --disable-pip-version-check --upgrade "$@"
}
install openai openai
install anthropic anthropic
install openai-agents openai-agents
install strands-agents "strands-agents[openai,anthropic]"
install langchain langchain langchain-openai langchain-anthropic
install openrouter openrouter
