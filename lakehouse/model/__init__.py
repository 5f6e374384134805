"""Plain values that every layer understands: frozen dataclasses, no I/O, no configuration."""
