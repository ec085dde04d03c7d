"""Values without behaviour of their own: usage, messages, events, endings, errors, redaction and their JSON form."""
