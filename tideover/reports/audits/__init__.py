"""Pages and tables of audits."""
