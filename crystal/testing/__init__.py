"""The test kit: the fixture ``crystaler`` runs Crystal in a fresh home and workspace and returns everything it did."""
