from orcast.frame.run import recalibrate as recalibrate
from orcast.frame.run import recalibrate_partition as recalibrate_partition
from orcast.frame.state import FrameState as FrameState
