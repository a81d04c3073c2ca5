"""Notify: accept a notification at once, deliver it surely."""
