from orcast.frame.api import recalibrate as recalibrate
from orcast.frame.state import PanelState as PanelState
