"""The stock clients behind one interface (`client.py`): a scenario is written once for all of them."""
