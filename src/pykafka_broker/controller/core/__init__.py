"""What the controller decides, pure: topics, brokers, in-sync replicas, configurations, ACLs, features."""
