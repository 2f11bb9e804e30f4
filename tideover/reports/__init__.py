"""What came out: tables, figures, HTML, comparison with published measurements."""
