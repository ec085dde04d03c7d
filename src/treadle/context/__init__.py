"""What a model is shown before and while it works. Nothing here asks a model: texts go in, texts within a budget come out."""
