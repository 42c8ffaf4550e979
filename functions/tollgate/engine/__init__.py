"""One generation from plan to settlement; knows protocols, never a vendor, never AWS."""
