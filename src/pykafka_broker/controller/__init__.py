"""The controller: decides on metadata while this node leads the metadata log."""
