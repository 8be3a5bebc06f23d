from orcast.panel.api import recalibrate as recalibrate
from orcast.panel.state import PanelState as PanelState
