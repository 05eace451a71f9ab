"""What plans owe each other and their bounds, over random problems on machines of all kinds."""
