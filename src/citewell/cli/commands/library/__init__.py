"""`citewell projects` and `citewell documents`: what is indexed."""
