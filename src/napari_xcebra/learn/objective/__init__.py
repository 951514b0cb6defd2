"""What a run minimises: InfoNCE, the Jacobian penalty, and regression."""
