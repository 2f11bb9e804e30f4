"""What a strategy really guarantees: faults before, at and after each step of its protocol."""
