"""``tideover explore``: a page on which one moves what a scenario says, and sees what follows."""
