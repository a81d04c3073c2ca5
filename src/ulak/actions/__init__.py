"""Multi-step, multi-channel action plans: asked for by events, run step by step, every choice kept and explained."""
