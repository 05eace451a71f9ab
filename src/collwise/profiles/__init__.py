"""What was measured on one machine: records, the profile that holds them, and where it lives."""
