"""Problems in, certified solutions out: the compiled core, or the first-order loop."""
