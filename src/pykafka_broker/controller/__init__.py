"""The controller: decides on metadata while this node leads the metadata log.

core/                the decisions (pure)
active_controller    the shell around the core, in one term of leadership
role                 has an active controller while this node leads
channel              how a node asks the active controller: `nearest_channel` goes to the role on this
node, `remote_channel` over the network (`leader_connection`), in the words of `wire`
forwarding           whether requests of clients go to another node's active controller
registration         a controller registers with the active one
decision_lines       what is decided, in the log
"""
