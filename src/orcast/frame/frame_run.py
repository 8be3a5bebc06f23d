"""Old place of `orcast.frame.run`."""

from orcast.frame.options import FrameOptions as FrameOptions
from orcast.frame.run import FrameRun as FrameRun
