"""Events of a study: who gets them, and how they are sent."""
