"""Models of the `cebra` package, and estimators of scikit-learn, in and out."""
