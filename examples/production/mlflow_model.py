"""A frozen recalibrator as an MLflow model: `pip install mlflow-skinny orcast`.

The model recalibrates by the state at the time of logging and learns nothing; log it again when outcomes have come.
"""

import mlflow.pyfunc

import orcast as oc

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


class Recalibrated(mlflow.pyfunc.PythonModel):
    """Columns q0.05, q0.5, ... in, the same columns recalibrated out."""

    def load_context(self, context):
        """Load the state, once for each process."""
        self.recal = oc.Recalibrator.load(context.artifacts["state"])

    def predict(self, context, model_input, params=None):
        """Recalibrate each row by itself."""
        levels = [float(name[1:]) for name in model_input.columns]
        after = model_input.copy()
        for row, values in model_input.iterrows():
            p = self.recal.peek(dict(zip(levels, values.tolist(), strict=True)))
            after.loc[row] = p.quantile(levels)
        return after


def log(recal, folder):
    """Write a recalibrator as a model to an empty folder."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as place:
        state = Path(place, "state.orcast")
        recal.save(state)
        mlflow.pyfunc.save_model(folder, python_model=Recalibrated(), artifacts={"state": str(state)})
