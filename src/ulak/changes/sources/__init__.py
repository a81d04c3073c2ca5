"""Sources: how a published list is read into records. One file per format."""
