from orcast.frame.run import recalibrate as recalibrate
from orcast.frame.state import FrameState as FrameState
