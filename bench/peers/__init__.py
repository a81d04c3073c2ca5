"""The systems that Ulak is measured against, each at its best settings, and the raw limits of the stores."""
