"""Metrics that clients push (KIP-714): pure, the time comes from a clock that is passed in.

* `subscriptions.py`: what one client is asked for, from all subscriptions;
* `instance.py`: one instance of a client: when it may ask and push, and what it is refused;
* `client_metrics.py`: all instances, the `Telemetry` of handlers (`apis/ports/telemetry.py`);
* `otlp.py`: what is in a push;
* `series.py`: the newest value of each series that clients have pushed.
"""
