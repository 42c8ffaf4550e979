"""The stores in memory: the reference that DynamoDB stores are compared with."""
