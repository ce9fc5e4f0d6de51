"""Does a decision survive in a long document?"""
