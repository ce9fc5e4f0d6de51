"""Text to circuit state: backbone > expander > gate > saturation > pool > head."""
