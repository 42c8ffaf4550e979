"""The batches of providers: the calls that submit, find, poll, read and cancel them."""
