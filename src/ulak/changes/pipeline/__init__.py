"""From a downloaded file to a delta. These functions run on the engine's processes and touch files, never a store."""
