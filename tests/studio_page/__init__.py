"""The page in a real browser. A package, so that pytest closes the browser before a test that has an event loop of its own."""
