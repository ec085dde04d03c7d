"""What the functions of the kit should do."""

import unittest

import kit


class KitTest(unittest.TestCase):
    def test_is_adult(self):
        self.assertIs(kit.is_adult(18), True)
        self.assertIs(kit.is_adult(17), False)
        self.assertIs(kit.is_adult(40), True)

    def test_full_name(self):
        self.assertEqual(kit.full_name("Ada", "Lovelace"), "Ada Lovelace")
        self.assertEqual(kit.full_name("Alan", "Turing"), "Alan Turing")

    def test_average(self):
        self.assertEqual(kit.average([2, 4, 6]), 4)
        self.assertEqual(kit.average([1, 2]), 1.5)

    def test_is_palindrome(self):
        self.assertIs(kit.is_palindrome("level"), True)
        self.assertIs(kit.is_palindrome("abc"), False)
        self.assertIs(kit.is_palindrome("abca"), False)

    def test_squares(self):
        self.assertEqual(kit.squares(3), [1, 4, 9])
        self.assertEqual(kit.squares(1), [1])
        self.assertEqual(kit.squares(0), [])

    def test_evens(self):
        self.assertEqual(kit.evens([1, 2, 3, 4]), [2, 4])
        self.assertEqual(kit.evens([1, 3]), [])

    def test_without_spaces(self):
        self.assertEqual(kit.without_spaces("a b c"), "abc")
        self.assertEqual(kit.without_spaces(" to be  or "), "tobeor")

    def test_unique(self):
        self.assertEqual(kit.unique([9, 1, 9, 5, 1]), [1, 5, 9])
        self.assertEqual(kit.unique([]), [])


if __name__ == "__main__":
    unittest.main()
