"""The web console: pages about any Kafka cluster, made on the server, with live numbers.

    command.py       `pykafka-broker console`
    server.py        uvicorn, and the sockets
    beside.py        the console that a broker serves (`console.listeners`), in a thread of its own
    settings.py      what the console is told: the cluster, where it listens, whether it may write
    routes.py        which function makes which page
    app.py           from a request to a page: routes, sign-in, errors
    guard.py         names of hosts, headers, the cookie and the token of forms
    sessions.py      the users who have signed in
    visit.py         one request for a page: its fields, and a client that acts as its user
    page.py          the parts of a page: tables, forms, charts
    live.py          the numbers that change while a page is open

  one file per subject

    cluster.py  topics.py  transactions.py  quorum.py  access.py  disks.py  spark.py
    groups.py        with group_look.py (many at once)
    messages.py      with decoding.py (values) and search.py

It shows what the commands of `cli/` gather, and changes what they change. Each visitor signs in as a user of
the cluster, whose ACLs decide; where the cluster has no SASL, there is no sign-in. It needs the extra
`console`.

Left out: the files of a partition's segments, which no API of Kafka tells.
"""
