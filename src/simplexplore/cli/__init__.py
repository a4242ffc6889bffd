"""The commands: arguments in, text or JSON out; nothing is computed here."""
