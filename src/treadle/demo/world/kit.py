"""A kit of small functions. Their bodies are missing."""


def is_adult(age):
    """True if age is 18 or more."""
    raise NotImplementedError


def full_name(first, last):
    """Joins first and last with a space."""
    raise NotImplementedError


def average(numbers):
    """Average of a list of numbers."""
    raise NotImplementedError


def is_palindrome(text):
    """True if text is a palindrome."""
    raise NotImplementedError


def squares(n):
    """List of the squares of 1..n."""
    raise NotImplementedError


def evens(numbers):
    """Only the even numbers of the list."""
    raise NotImplementedError


def without_spaces(text):
    """Replaces every space with nothing."""
    raise NotImplementedError


def unique(items):
    """Sorted list of the unique items."""
    raise NotImplementedError
