from orcast.frame.api import recalibrate as recalibrate
from orcast.frame.api import recalibrate_partition as recalibrate_partition
from orcast.frame.state import PanelState as PanelState
