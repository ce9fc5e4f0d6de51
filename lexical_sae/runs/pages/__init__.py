"""The pages of a run: its report, of parts that it left in its folder, and its explorer."""
