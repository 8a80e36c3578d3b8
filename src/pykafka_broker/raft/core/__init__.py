"""The pure part of KRaft: roles, voters, elections. No disk, no network, no clock."""
