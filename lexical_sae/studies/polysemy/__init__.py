"""Words with several senses: slots, senses and word-in-context pairs."""
