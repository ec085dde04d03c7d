import unittest

import kit


class KitTest(unittest.TestCase):
    pass
