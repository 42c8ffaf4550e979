"""Deploy a stage: questions before the build, then change set, publication and next steps."""
