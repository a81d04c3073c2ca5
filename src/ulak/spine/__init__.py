"""The spine: jobs, timers, events and outcomes that every capacity stands on."""
