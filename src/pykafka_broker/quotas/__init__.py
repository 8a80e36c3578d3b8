"""Quotas of clients: pure, the time comes from a clock that is passed in.

* `rates.py`: the measures that use is compared with: a windowed rate, and a bucket of tokens;
* `accounts.py`: which quota applies to a client, of those that may match it;
* `usage.py`: the measures of many accounts, of which idle ones are forgotten;
* `client_quotas.py`: the `Quotas` of handlers (`apis/ports/quotas.py`);
* `address_rates.py`: the rate of new connections of an address.
"""
