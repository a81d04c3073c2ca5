"""The life of a step: started, run, ended, stopped."""
