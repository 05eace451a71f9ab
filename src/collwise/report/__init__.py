"""What was measured and simulated, for people and for programs: tables, documents, a page."""
