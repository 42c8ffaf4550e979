"""AWS's authorisation before an emulated service: policies, the calls they decide, and a proxy."""
