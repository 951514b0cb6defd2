"""What an NWB file holds, found by the types of its objects."""
