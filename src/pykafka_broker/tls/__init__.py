"""TLS as Apache Kafka's `ssl.*` keys describe it, made into what Python's `ssl` takes.

* `principal_mapping.py`: `ssl.principal.mapping.rules`, pure;
* `distinguished_names.py`: the name in a certificate as Java prints it, pure;
* `cipher_suites.py`: Java's names of cipher suites in those of OpenSSL, pure;
* `certificates.py`: the fields of a certificate, and when it ends, pure;
* `jks.py`: Java's own format of key and trust stores, pure;
* `stores.py`: key and trust stores of all types, from text or from files;
* `contexts.py`: the contexts of servers and clients;
* `authority.py`: a small authority, for a laptop or a test.
"""
