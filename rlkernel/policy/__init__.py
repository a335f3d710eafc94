"""Generation back ends and the small model made from scratch."""
