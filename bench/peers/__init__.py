"""The systems that Ulak is measured against, each with its best documented settings, and the raw limits of the stores."""
