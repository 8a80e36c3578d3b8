"""Quotas of clients: pure, the time comes from a clock that is passed in.

* `rates.py`: the measures of use: a windowed rate, and a token bucket;
* `accounts.py`: the quota that applies to a client;
* `usage.py`: the measures of many accounts, without idle ones;
* `client_quotas.py`: the `Quotas` of handlers (`apis/ports/quotas.py`);
* `throttles.py`: a throttle in words, for the history of the node;
* `connection_rates.py`: the rate of new connections of a broker, a listener or an address.
"""
