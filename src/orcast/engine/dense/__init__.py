"""The dense engine: any payoff on any space, in numpy."""
