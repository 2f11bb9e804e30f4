"""Settings of strategies, and what these say of themselves by them; the protocols are in the folder above."""
