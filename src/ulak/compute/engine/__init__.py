"""The engine as its caller uses it: futures, results, ways in, and the seam to where work runs."""
