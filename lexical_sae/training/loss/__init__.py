"""What a step minimises: `criterion` adds up the task, the circuit terms, and the parts of some recipes beside it."""
