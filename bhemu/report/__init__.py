"""A report of a recording: what took the time, where, and what it waited for; as text, HTML, JSON and for Perfetto.

The recording is that of `bhemu run-client --record`, or of `bhemu.Chip.record`.
"""
