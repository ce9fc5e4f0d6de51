"""Do the words that a model shows mean what they say?"""
