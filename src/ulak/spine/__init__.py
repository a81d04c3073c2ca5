"""The spine: jobs, timers, events and outcomes that every room stands on."""
