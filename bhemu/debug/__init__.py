"""Time and hazards: record a run, then ask how long the documents say it takes and whether its order is safe."""
