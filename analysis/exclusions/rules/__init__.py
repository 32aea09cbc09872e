"""The exclusion rules, one module per rule or per pair with the same settings. All modules are imported when Django starts."""
