"""What the experimenter knows: problem files, the language of constraints, families, instances."""
