"""The same studies from elsewhere."""
